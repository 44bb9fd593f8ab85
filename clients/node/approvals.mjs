// Passes airlock's questions about calls to the host's function, and its answers back.

/** Airlock names the server whose form it passes on. Its own questions name none. */
const OF_SERVER = "dev.airlock/server";

/** Answers one question. Forms that servers want filled in are declined. */
export async function decide(onApproval, params, signal) {
  const decision = params.requestedSchema?.properties?.decision;
  if (params._meta?.[OF_SERVER] !== undefined || !Array.isArray(decision?.enum)) {
    return { action: "decline" };
  }
  const choices = decision.enum.map((word, n) => ({
    decision: word,
    text: decision.enumNames?.[n] ?? word,
  }));
  const question = { message: params.message, choices, signal };
  const answered = await answer(onApproval, question);
  const content = typeof answered === "string" ? { decision: answered } : { ...answered };
  content.decision ??= "refuse";
  return { action: "accept", content };
}

/** A function that fails refuses. An error as the answer would count as a question that was not
 * shown, and airlock would ask elsewhere. */
async function answer(onApproval, question) {
  try {
    return await onApproval(question);
  } catch (error) {
    process.emitWarning(`\`onApproval\` failed, so the call is refused: ${error?.message ?? error}`);
    return "refuse";
  }
}
