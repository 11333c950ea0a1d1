import { WS_URL } from './settings.mjs'

/**
 * Neither browsers nor the usual Solana clients can set a header on a WebSocket. There a ticket replaces the token: it is requested with the token, is part
 * of the URL, and is valid for connecting within 60 seconds. An open connection stays open.
 */
export async function ticketUrl(rpcUrl, token) {
  const response = await fetch(`${rpcUrl}/v1/ws-ticket`, { method: 'POST', headers: { 'x-token': token } })
  if (!response.ok) throw new Error(`no ticket: ${response.status} ${await response.text()}`)
  const { url, ticket } = await response.json()
  // Without `url` the gateway does not know its public address.
  return url ?? `${WS_URL}/?ticket=${ticket}`
}
