"""Chat models that the command line names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_agentmem.errors import ConfigurationError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def chat_model(
    name: str,
    base_url: str | None,
    *,
    hint: str,
    **settings: Any,  # noqa: ANN401 - any setting of a provider
) -> BaseChatModel:
    """Return a chat model, made at once so that a wrong name shows before anything else is done.

    Args:
        name: Its name for `init_chat_model`.
        base_url: Server of an OpenAI-compatible model.
        hint: What to do where it cannot be used.
        **settings: Further settings of the model.

    Raises:
        ConfigurationError: There is no such model, package or key.
    """
    from langchain.chat_models import init_chat_model

    if base_url:
        settings["base_url"] = base_url
    try:
        model: BaseChatModel = init_chat_model(name, **settings)
    except Exception as error:  # every provider has its own errors for a missing key or name
        msg = f"The chat model {name!r} cannot be used: {error} {hint}"
        raise ConfigurationError(msg) from error
    return model
