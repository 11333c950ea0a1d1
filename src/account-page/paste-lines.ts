/** A line to paste into a shell or a program. */
export type PasteLine = { readonly id: string; readonly title: string; readonly note: string; readonly text: string }

/** In the place of the token, until the customer chooses otherwise. */
export const MASKED_TOKEN = '$SLUICE_TOKEN'

type PasteInput = {
  readonly endpoints: Readonly<Record<string, string>>
  readonly products: readonly string[]
  /** The origin of the page, which is that of the RPC listener. */
  readonly origin: string
  /** The token, or `MASKED_TOKEN`. */
  readonly token: string
}

/** Working lines for each interface that the subscription has. The addresses are quoted for a shell: they come from the config. */
export function pasteLines({ endpoints, products, origin, token }: PasteInput): PasteLine[] {
  const rpc = endpoints['rpc'] ?? origin
  const isMasked = token === MASKED_TOKEN
  const header = `-H "x-token: ${token}"`
  const scriptToken = isMasked ? 'process.env.SLUICE_TOKEN' : `'${token}'`
  const lines: PasteLine[] = []
  if (products.includes('bundle') || products.includes('dedicated-node')) {
    lines.push(
      {
        id: 'curl',
        title: 'curl',
        note: 'One JSON-RPC call.',
        text: `curl ${header} -H 'content-type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"getSlot"}' ${rpc}`,
      },
      {
        id: 'web3',
        title: '@solana/web3.js',
        note: 'Version 1. A ticket connects the WebSocket within a minute: after a loss, get a new one for a new Connection.',
        text: web3Lines(rpc, endpoints['ws'], scriptToken),
      },
    )
    if (endpoints['ws'] !== undefined)
      lines.push({
        id: 'wscat',
        title: 'wscat',
        note: 'A WebSocket; then type {"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}.',
        text: `npx wscat ${header} -c ${endpoints['ws']}`,
      })
    if (endpoints['grpc'] !== undefined)
      lines.push({
        id: 'yellowstone',
        title: '@triton-one/yellowstone-grpc',
        note: 'A Yellowstone gRPC client.',
        text: `new Client('${endpoints['grpc']}', ${scriptToken}, undefined)`,
      })
  }
  if (products.includes('indexer') && endpoints['indexer'] !== undefined)
    lines.push({
      id: 'sql',
      title: 'SQL',
      note: 'With the login of your card.',
      text: `curl -u "$SLUICE_SQL_USER:$SLUICE_SQL_PASSWORD" ${header} --data 'select * from coverage' ${endpoints['indexer']}`,
    })
  lines.push({
    id: 'usage',
    title: 'Usage',
    note: 'What this page shows, for your own programs.',
    text: `curl ${header} '${rpc}/v1/usage?by=day'`,
  })
  return lines
}

/** web3.js sets no header on its WebSocket, so its address has a ticket. */
function web3Lines(rpc: string, ws: string | undefined, token: string): string {
  const headers = `const headers = { 'x-token': ${token} }`
  if (ws === undefined) return `${headers}\nconst connection = new Connection('${rpc}', { httpHeaders: headers })`
  return [
    headers,
    `const response = await fetch('${rpc}/v1/ws-ticket', { method: 'POST', headers })`,
    'const { ticket } = await response.json()',
    `const wsEndpoint = \`${ws}/?ticket=\${ticket}\``,
    `const connection = new Connection('${rpc}', { httpHeaders: headers, wsEndpoint })`,
  ].join('\n')
}
