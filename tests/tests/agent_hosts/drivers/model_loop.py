# The loop of an agent, for clients that have none: asks the model, and makes the calls that it
# wants, until it says something else.
import json
import urllib.request


def ask(url, tools, messages):
    body = json.dumps({"model": "scripted", "tools": tools, "messages": messages}).encode()
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]


async def converse(url, tools, call):
    """`tools` has names and descriptions. `call` returns the content blocks of a call."""
    functions = [{"type": "function", "function": {"name": name, "description": text}} for name, text in tools]
    messages = [{"role": "user", "content": "begin"}]
    while True:
        message = ask(url, functions, messages)
        messages.append(message)
        if not message.get("tool_calls"):
            return
        for wanted in message["tool_calls"]:
            function = wanted["function"]
            blocks = await call(function["name"], json.loads(function["arguments"]))
            messages.append({"role": "tool", "tool_call_id": wanted["id"], "content": [part(it) for it in blocks]})


def part(block):
    if block["type"] == "image":
        address = f"data:{block['mimeType']};base64,{block['data']}"
        return {"type": "image_url", "image_url": {"url": address}}
    return {"type": "text", "text": block.get("text", "")}
