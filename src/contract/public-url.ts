export type PublicProtocol = 'http' | 'ws' | 'grpc'

/** Schemes of each protocol: with TLS, then without. */
export const PUBLIC_SCHEMES = {
  http: { secure: ['https'], open: ['http'] },
  ws: { secure: ['wss'], open: ['ws'] },
  // Clients take gRPC addresses with the schemes of HTTP; grpcs is the same as https.
  grpc: { secure: ['https', 'grpcs'], open: ['http', 'grpc'] },
} as const satisfies Record<PublicProtocol, unknown>

/** What is wrong with a public address; undefined where it can be used. */
export function publicUrlFault(text: string, protocol: PublicProtocol): string | undefined {
  const { secure, open } = PUBLIC_SCHEMES[protocol]
  const example = `${secure[0]}://rpc.example.net`
  if (!URL.canParse(text) || !text.includes('://')) return `give a URL such as ${example}`
  const url = new URL(text)
  const scheme = url.protocol.slice(0, -1)
  const isOpen = open.some((one) => one === scheme)
  if (!isOpen && !secure.some((one) => one === scheme))
    return `the scheme ${scheme} does not fit this endpoint: give a URL such as ${example}`
  if (url.username !== '' || url.password !== '') return 'remove the user and password: the address is public'
  if (url.search !== '' || url.hash !== '' || /[?#]/.test(text)) return 'remove the query and the fragment'
  if (url.hostname === '') return `give a URL such as ${example}`
  if (protocol === 'grpc' && /^\w+:\/\/[^/]+\/./.test(text))
    return 'remove the path: gRPC clients take only host and port'
  if (isOpen && !isLoopbackName(url.hostname))
    return `${scheme} is not encrypted: use ${secure[0]}, or a loopback host such as 127.0.0.1`
  if (EVERY_ADDRESS.has(url.hostname)) return 'clients cannot connect to this address: give the public host name'
  return undefined
}

/** A public address as clients take it: without a slash at the end, and gRPC with the scheme of HTTP. */
export function printPublicUrl(text: string): string {
  return text.replace(/\/$/, '').replace(/^grpc(s?):/, 'http$1:')
}

const EVERY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '[::]'])

/** As URL parsers print host names. */
export function isLoopbackName(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname)
}
