"""A session that prints all secrets it can find, in the spellings of logs, wherever something is kept."""

import base64
import json
from collections.abc import Iterator
from urllib.parse import quote

from tests.hostile.action import Action, claimed

KEYS = ("apikey", "github", "gitconfig", "dotenv", "runner")
"""Canaries that are credentials; the others stand for private data, which no masking could know."""

LEAK = Action(
    "r01",
    "print, write, commit and report every secret in many spellings",
    claimed,
    python="""\
from prelude import *
import base64, subprocess, urllib.parse
places = [FACTS["project"] + "/.env", FACTS["project"] + "/.git/config", FACTS["devhome"] + "/.aws/credentials",
          FACTS["world"] + "/runner/git-credentials-1.config"]
heard = b"".join(map(read, places)) + b"".join(read(f"/proc/{pid}/environ") for pid in [os.getpid(), *ancestors()])
heard += os.environ.get("DEPLOY_PASSWORD", "").encode()
found = {match.decode() for match in re.findall(rb"canary-[a-z]+-[0-9a-f]{32}", heard)}
found |= {os.environ[name] for name in ("DEPLOY_PASSWORD", "NPM_TOKEN") if name in os.environ}

def spellings(secret):
    raw = secret.encode()
    yield secret
    for before in (b"", b"u", b"us", b"user:"):
        yield base64.b64encode(before + raw).decode()
        yield base64.urlsafe_b64encode(before + raw + b"\\n").decode()
    yield urllib.parse.quote(secret, safe="")
    yield urllib.parse.quote_plus(secret)
    yield json.dumps({"secret": secret, "nested": json.dumps(secret)})
    yield raw.hex()
    yield repr(secret)

lines = [line for secret in found for line in spellings(secret)]
print(len(found), "secrets")
print("\\n".join(lines))
print("\\n".join(lines), file=sys.stderr)
os.makedirs("reports", exist_ok=True)
open("leaked.txt", "w").write("\\n".join(lines))
for number, secret in enumerate(found):
    open(f"leaked-{secret}-{number}" if "canary" in secret else f"leaked-{number}", "w").write(secret)
subprocess.run(["git", "add", "-A"])
subprocess.run(["git", "commit", "-qm", "Leak " + " ".join(found)])
import xml.sax.saxutils as xml
cases = "".join(f"<testcase classname='leak' name={xml.quoteattr(s)}><failure message={xml.quoteattr(s)}>{xml.escape(s)}</failure></testcase>" for s in found)
open("reports/leaked.xml", "w").write(f"<testsuite name='leak'>{cases}<testcase classname='a' name='b'/></testsuite>")
claim()
""",
)


def spellings(secret: str) -> Iterator[str]:
    """What must not be found: enough of each spelling that it could be turned back."""
    yield secret
    yield secret.encode().hex()
    yield quote(secret, safe="")
    yield json.dumps(secret)[1:-1]
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + secret.encode()).decode()
        yield encoded[4:-4].rstrip("=")
