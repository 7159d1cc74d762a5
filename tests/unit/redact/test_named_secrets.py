"""What a text names a secret is masked, in whatever form it stands; words, variables and placeholders are not.

The values are invented.
"""

import pytest

from tests.support.cases import for_each
from zelda_ci import named_secrets
from zelda_ci.redact import MASK, Redactor

redact = Redactor()

VALUES = [
    "aK8x2mQ9-zL4vW7p",
    "Tr0ub4dor&3",
    "s3cr3t-Pa55w0rd",
    "7f3d2c1b0a9e8d7c6b5a",
    "kJq7WzXv/BnM+2==",
    "fake-db-9f8e7d6c5b4a",
]

FORMS = {
    "dotenv": "DB_PASSWORD=@",
    "dotenv, quoted": 'DB_PASSWORD="@"  # of production',
    "shell": "export PGPASSWORD='@'",
    "shell, before a command": "PGPASSWORD=@ psql",
    "shell, a default": "${DB_PASSWORD:-@}",
    "npmrc": "//registry.example.com/:_authToken=@",
    "pip.conf": "index-url = https://me:@@pypi.example.com/simple",
    "netrc": "machine h.example login me password @",
    "YAML": "db:\n  password: @\n  user: me",
    "YAML, quoted": "  password: '@' # of production",
    "YAML, a block": "  clientSecret: |-\n    @\n",
    "a list of variables": '- name: DB_PASSWORD\n  value: "@"',
    "the same in a diff": "+        - name: DB_PASSWORD\n+          value: @",
    "JSON": '{"user": "me", "clientSecret": "@", "n": 1}',
    "JSON in JSON": r"{\"user\": \"me\", \"clientSecret\": \"@\"}",
    "TOML": 'client_secret = "@"',
    "INI": "[db]\npassword = @\n",
    "properties": "spring.datasource.password=@",
    "XML": "<server><password>@</password></server>",
    "XML, an attribute": '<add key="ApiKey" value="@"/>',
    "Dockerfile": "ENV DB_PASSWORD @",
    "Dockerfile, with a sign": "ENV DB_PASSWORD=@ PORT=1",
    "an option": "run --token @ --verbose",
    "an option, with a sign": "run --token=@",
    "Terraform": 'variable "x" {\n  secret_key = "@"\n}',
    "PHP": "define('DB_PASSWORD', '@');",
    "PHP, an array": "'password' => '@',",
    "Python": 'SECRET_KEY = "@"',
    "Python, with a type": 'def f(password: str = "@"): ...',
    "Python, an entry": 'settings["api_key"] = "@"',
    "JavaScript": "const config = { apiKey: '@' }",
    "JavaScript, a template": "const authToken = `@`",
    "Go": 'cfg.Password = "@"',
    "Go, new": 'password := "@"',
    "Java": '.setPassword("@")',
    "Ruby": 'client_secret: "@",',
    "C#": "Server=db;User=me;Password=@;",
    "an address": "postgres://app:@@db.example/shop",
    "an address without a user": "redis://:@@cache.example:6379/0",
    "a header": "Authorization: Bearer @",
    "a header in code": '"Authorization": "Bearer @"',
    "a header of a key": "curl -H 'X-Api-Key: @' https://h.example",
    "a file with line numbers": "    12→DB_PASSWORD=@",
    "found by grep": "config/.env:3:DB_PASSWORD=@",
    "HTML": "&quot;password&quot;: &quot;@&quot;",
    "a line of a log": 'level=info msg="connecting" dbPassword=@ host=db',
    "a parameter of an address": "https://h.example/?n=1&token=@",
    "a parameter before another": "https://h.example/?n=1&token=@&user=bob",
}

UNFIT = {
    ("pip.conf", "kJq7WzXv/BnM+2=="),
    ("an address", "kJq7WzXv/BnM+2=="),
    ("an address without a user", "kJq7WzXv/BnM+2=="),
}
"""An address cannot hold a slash there."""


@for_each([(form, value) for value in VALUES for form in FORMS if (form, value) not in UNFIT])
def test_a_named_secret_is_masked_and_nothing_else(form: str, value: str) -> None:
    assert redact(FORMS[form].replace("@", value, 1)) == FORMS[form].replace("@", MASK, 1)


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD=correct-horse-battery-staple",
        "MYSQL_ROOT_PASSWORD=Sommer2024!",
        "DB_PASSWORD=p(w)d&8#kX!q2",
        "password: kq7Zp2Lx9",
        "postgres://app:hunter2@db.example/shop",
        "https://0a1b2c3d4e5f60718293@github.com/o/r",
        "APP_KEY=base64:aK8x2mQ9zL4vW7paK8x2mQ9zL4vW7p",
        "https://h.example/?access_token=aK8x2mQ9zL4vW7p&user=bob",
    ],
)
def test_so_are_passwords_that_people_choose_and_keys_in_addresses(text: str) -> None:
    assert MASK in redact(text)


HARMLESS = [
    "DB_PASSWORD=changeme",
    "DB_PASSWORD=your-password-here",
    "DB_PASSWORD=",
    "DB_PASSWORD=${DB_PASSWORD}",
    "DB_PASSWORD=$DB_PASSWORD",
    "password: ${{ secrets.DB_PASSWORD }}",
    "password: {{ .Values.db.password }}",
    "password: <your-password-1>",
    "api_key: <YOUR_API_KEY>",
    "api_key = xxxxxxxxxxxxxxxx",
    "apiKey: process.env.API_KEY_V2",
    "OLDPWD=/var/tmp/runs-fia7ns0z/9478b54622d8/ws",
    'password = os.environ["DB_PASSWORD"]',
    'password = os.getenv("DB_PASSWORD2")',
    "password: str",
    "password: str | None = None",
    "token: string;",
    "token: Token2Type<A1B2>",
    "password = getpass.getpass()",
    "token = tokens[index1]",
    "token = self.parser2.next_token(kind3)",
    "private_key = ed25519.Ed25519PrivateKey.generate()",
    '"tokens": 123456789012',
    "max_tokens: 8192, input_tokens: 1048576",
    '"publicKeyToken": "1fc8b3b9a1e18e3b"',
    "nextPageToken: CAUQAAaK8x2mQ9zL4vW7p",
    "secretName: db-credentials-v2",
    "secret: my-app-tls",
    "token: sha256",
    'raise ValueError("password: must have 8 to 64 characters")',
    'token_pattern = r"[A-Za-z0-9_-]{20,}"',
    'TOKEN = re.compile(r"\\d+|\\w+")',
    "password: 12345678",
    "password: Password123!",
    "postgres://postgres:postgres@localhost/db",
    "postgres://user:password@localhost/db",
    "amqp://guest:guest@localhost",
    "https://oauth2:${TOKEN}@git.example/o/r",
    "git@github.com:o/r.git and me@example.com",
    "https://example.com/@scope/package",
    "token_url: https://h.example/oauth2/token",
    "password_file: /run/secrets/db_password_1",
    "secrets: inherit",
    "auth_token_ttl: 3600s",
    "The token of a session is made for one run; its secret (see above) is not.",
    "key: 9f8e7d6c5b4a9f8e7d6c5b4a",
]


@for_each(HARMLESS)
def test_what_is_no_secret_stays_readable(text: str) -> None:
    assert redact(text) == text


def test_in_an_object_the_key_names_the_value() -> None:
    secret = VALUES[0]
    given = {"password": secret, "env": [{"name": "API_TOKEN", "value": secret}], "max_tokens": 5, "token": "next"}
    assert redact.json(given) == {
        "password": MASK,
        "env": [{"name": "API_TOKEN", "value": MASK}],
        "max_tokens": 5,
        "token": "next",
    }


def test_what_is_played_back_is_not_guessed_at() -> None:
    text = f'login(password="{VALUES[0]}")'
    assert redact.known_only()(text) == text
    assert redact.known_only().json({"password": VALUES[0]}) == {"password": VALUES[0]}
    assert redact(text) == f'login(password="{MASK}")'


def test_values_are_told_as_they_stand_and_as_they_are_meant() -> None:
    assert set(named_secrets.values("postgres://app:c0rrect%21horse@db/x")) == {"c0rrect%21horse", "c0rrect!horse"}
