/**
 * Neither browsers nor the usual Solana clients can set a header on a WebSocket. A ticket stands in for the token there: it is asked for with the token, goes
 * into the address, and is good for 60 seconds of connecting. A connection once open stays open.
 */
export async function ticketUrl(rpcUrl, token) {
  const answer = await fetch(`${rpcUrl}/v1/ws-ticket`, { method: 'POST', headers: { 'x-token': token } })
  if (!answer.ok) throw new Error(`no ticket: ${answer.status} ${await answer.text()}`)
  const { url } = await answer.json()
  return url
}
