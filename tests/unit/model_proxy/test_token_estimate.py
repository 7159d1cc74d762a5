"""Estimates of tokens, beside what ctok counts."""

from tests.support.cases import for_each
from zelda_ci.model_proxy.pricing import estimate_request, estimate_text

PROSE = "Amounts are whole numbers of cents. Never write a float, and never round before the last step of it all.\n"
CODE = '```xml\n<PackageReference Include="Serilog" Version="3.1.1" />\n```\n- `dotnet build /p:Version=1.2`\n'
JAPANESE = "金額は必ず整数のセントで扱い、`float` は決して使わないこと。テストを実行してからコミットしてください。\n"
CHINESE = "金额一律使用整数分，禁止使用浮点数。提交之前必须运行 `npm test`。\n"  # noqa: RUF001
KOREAN = "금액은 항상 정수 센트로 다루고 부동소수점은 절대 쓰지 마세요.\n"
RUSSIAN = "Сумма всегда хранится в целых копейках, никогда не используй float.\n"

# Ten times each, as ctok counts it: for Claude 4.7 and later, and for the models before.
COUNTED = [
    (PROSE, "claude-sonnet-5-5", 319),
    (PROSE, "claude-opus-4-7", 319),
    (PROSE, "claude-sonnet-4-5-20250929", 249),
    (PROSE, "claude-sonnet-4-20250514", 249),
    (PROSE, "claude-3-5-haiku-20241022", 249),
    (CODE, "claude-fable-6", 490),
    (CODE, "eu.anthropic.claude-opus-4-6-v1", 409),
    (JAPANESE, "claude-opus-5", 429),
    (JAPANESE, "claude-haiku-4-5", 430),
    (CHINESE, "claude-opus-5", 359),
    (KOREAN, "claude-opus-5", 379),
    (KOREAN, "claude-haiku-4-5", 380),
    (RUSSIAN, "claude-opus-5", 259),
    (RUSSIAN, "claude-haiku-4-5", 259),
]


@for_each(COUNTED)
def test_a_text_is_estimated_within_15_percent(text: str, model: str, counted: int) -> None:
    assert abs(estimate_text(text * 10, model) / counted - 1) < 0.15


def test_a_request_has_the_frames_of_its_texts_and_tools() -> None:
    body = {"model": "claude-sonnet-5-5", "messages": [{"role": "user", "content": PROSE}]}
    alone, text = estimate_request(body), estimate_text(PROSE, "claude-sonnet-5-5")
    assert text < alone < text + 20
    assert alone + 300 < estimate_request({**body, "tools": [{"name": "greet", "input_schema": {}}]}) < alone + 500
    assert alone + text < estimate_request({**body, "system": [{"type": "text", "text": PROSE}]}) < alone + text + 20
