"""Advice on how to get a language model, for the first screen, /model and the offline assistant itself."""

OFFLINE_ANSWERS = "answers by fixed rules from memory and code"
WITHOUT_MODEL = f"the offline assistant {OFFLINE_ANSWERS}"
WAYS_TO_A_MODEL = (
    "/connect takes a key, or finds Ollama, LM Studio and llama.cpp",
    "or restart with a key: export ANTHROPIC_API_KEY=… (OPENAI_, …)",
)
