"""Why a judge's model gave no answer, in sentences."""

from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import PromptTooLongError
from zelda_ci.redact import SafeText

MAX_QUOTE_LENGTH = 300

LATER = "Try again later."
ADDRESS = "Check gatewayUrl or ANTHROPIC_BASE_URL."
KEY = "Check ANTHROPIC_API_KEY, or PORTKEY_API_KEY where a gateway is configured."
FEWER = "Raise judge.maxTokens, or write fewer acceptance criteria."
MODEL = "Check judgeModel, and gatewayUrl where it is set."

# Code, sentence and hint by HTTP status; the full hundreds stand for the others.
_BY_STATUS = {
    300: ("JUDGE_NOT_AN_API", "The judge's address redirects elsewhere, and Zelda does not follow", ADDRESS),
    400: ("JUDGE_REQUEST_REFUSED", "The judge's API refused the request", "Check judgeModel and judge."),
    401: ("JUDGE_AUTHENTICATION_FAILED", "The judge's key was refused", KEY),
    402: ("JUDGE_BILLING_FAILED", "The judge's account cannot pay", "Check credit and limits of the account."),
    403: ("JUDGE_ACCESS_DENIED", "The judge's key may not use this model", "Check what the key may use."),
    404: ("JUDGE_MODEL_NOT_FOUND", "The judge's model or address does not exist", MODEL),
    408: ("JUDGE_API_FAILED", "The judge's API gave up waiting", LATER),
    409: ("JUDGE_API_FAILED", "The judge's API reports a conflict", LATER),
    413: ("JUDGE_PROMPT_TOO_LONG", "The question is too large for the judge", "Lower judge.contextTokens."),
    429: ("JUDGE_RATE_LIMITED", "The judge's rate limit is reached", LATER),
    500: ("JUDGE_API_FAILED", "The judge's API failed", LATER),
    529: ("JUDGE_OVERLOADED", "The judge's provider is overloaded", LATER),
}

# The same by the type of an error inside a stream that had begun well; 500 for others.
STREAMED = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "authentication_error": 401,
    "invalid_request_error": 400,
    "request_too_large": 413,
}

# By which the API, and Bedrock, say in a 400 that a question is larger than the model's context.
_TOO_LONG = (
    "prompt is too long",
    "input length and `max_tokens` exceed context limit",
    "Input is too long for requested model",
)

# By which the API says in a 400 that nothing is left to pay with.
NO_CREDIT = "credit balance is too low"

_BY_STOP = {
    "refusal": ("JUDGE_REFUSED", "The judge refused to answer.", "Choose another judgeModel."),
    "max_tokens": ("JUDGE_ANSWER_CUT", "The judge's answer was longer than it may be.", FEWER),
    "model_context_window_exceeded": (
        "JUDGE_PROMPT_TOO_LONG",
        "Question and answer together are too large for the judge.",
        "Lower judge.contextTokens to what the model really has.",
    ),
}


def of_status(status: int, words: SafeText) -> JudgeError:
    """The failure that an HTTP status means; `words` is what the server wrote about it."""
    meant = status
    if status == 400:
        meant = 413 if any(phrase in words for phrase in _TOO_LONG) else 402 if NO_CREDIT in words else 400
    code, sentence, hint = _BY_STATUS.get(meant) or _BY_STATUS[min(meant // 100, 5) * 100]
    return _error(code, f"{sentence} (HTTP {status}){f': {_shortened(words)}' if words else ''}", hint)


def of_stop(reason: str) -> JudgeError | None:
    """The failure that a stop reason means; nothing where the answer is whole."""
    return _error(*_BY_STOP[reason]) if reason in _BY_STOP else None


def _error(code: str, message: str, hint: str) -> JudgeError:
    is_too_long = code == PromptTooLongError.default_code
    return PromptTooLongError(message, hint=hint) if is_too_long else JudgeError(message, hint=hint, code=code)


def unreachable(words: SafeText) -> JudgeError:
    """The connection could not be made, or broke."""
    hint = "Check the network, and gatewayUrl or ANTHROPIC_BASE_URL if they are set."
    return JudgeError(f"The judge could not be reached: {_shortened(words)}", hint=hint, code="JUDGE_UNREACHABLE")


def _shortened(text: str) -> str:
    words = " ".join(text[: 10 * MAX_QUOTE_LENGTH].split())
    return words if len(words) <= MAX_QUOTE_LENGTH else words[:MAX_QUOTE_LENGTH] + " ..."
