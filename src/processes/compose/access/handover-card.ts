import type { CreatedSubscription } from '../../../access/provisioning/subscriptions.ts'
import type { Limits } from '../../../contract/limits.ts'
import { printAddressPort } from '../../../platform/net/ip-range.ts'
import type { EndpointName, Endpoints } from './endpoints.ts'

export type CardInput = CreatedSubscription & { readonly limits: Limits; readonly endpoints: Endpoints }

/** The card for the customer. It contains the secrets of the subscription, so it is printed once and never stored. */
export function handoverCard(input: CardInput): string {
  const { subscription } = input
  const until = subscription.validUntil === null ? 'no end' : `valid until ${lastDay(subscription.validUntil)}`
  const sections = [
    [`Sluice subscription  ${subscription.name}          plan ${subscription.plan}, ${until}`],
    bundleLines(input),
    indexerLines(input),
    shredLines(input),
    decodedLines(input),
    senderLines(input),
    executionLines(input),
    accountLines(input),
    documentLines(input),
    secretLines(input),
    pasteLines(input),
    variableLines(input),
  ]
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n')}\n`
}

function bundleLines({ subscription, endpoints, limits }: CardInput): string[] {
  if (!usesNodes(subscription)) return []
  const isDedicated = !subscription.products.includes('bundle')
  return [
    fact('RPC', addressOf(endpoints, 'rpc')),
    fact('WS', addressOf(endpoints, 'ws')),
    fact('gRPC', addressOf(endpoints, 'grpc')),
    ...(isDedicated
      ? [fact('node', 'dedicated; calls are refused as not-assigned until the operator assigns it')]
      : []),
    ...(endpoints.isChainSimulated === true
      ? [fact('chain', 'embedded, with simulated traffic; not a public network')]
      : []),
    ...limitLines(limits).map((line, at) => fact(at === 0 ? 'limits' : '', line)),
  ]
}

function indexerLines({ subscription, endpoints, credential }: CardInput): string[] {
  if (!subscription.products.includes('indexer')) return []
  const lines = [fact('SQL', addressOf(endpoints, 'indexer'))]
  if (credential !== undefined)
    lines.push(
      fact('', `user     ${credential.record.username}`),
      fact('', `password ${credential.password}   shown once`),
    )
  return lines
}

function shredLines({ subscription, destination }: CardInput): string[] {
  if (!subscription.products.includes('shreds-raw')) return []
  if (destination === undefined) return [fact('shreds', 'no destination yet; send one IP:PORT to the operator')]
  return [fact('shreds', `UDP to ${printAddressPort(destination.ip, destination.port)} (${destination.proof})`)]
}

function decodedLines({ subscription, endpoints }: CardInput): string[] {
  if (!subscription.products.includes('shreds-decoded')) return []
  const address = usesNodes(subscription) ? 'on the gRPC address' : addressOf(endpoints, 'grpc')
  const { entries } = endpoints
  return [
    fact('decoded', `${address}: SubscribeDeshred and SubscribeEntries (preview)`),
    ...(entries === undefined ? [] : [fact('', `${entries}: SubscribeEntries alone`)]),
  ]
}

/** The sender needs no subscription. */
function senderLines({ endpoints }: CardInput): string[] {
  const { sender, tipAccounts = [] } = endpoints
  if (sender === undefined)
    return isMissing(endpoints, 'sender') ? [fact('sender', addressOf(endpoints, 'sender'))] : []
  return [
    fact('sender', `${sender}   no token; each transaction needs a tip`),
    fact('', `tip accounts: curl ${sender}/tips`),
    ...tipAccounts.map((account) => fact('', account)),
  ]
}

/** The execution service needs no subscription. */
function executionLines({ endpoints }: CardInput): string[] {
  const { execution, isExecutionSimulated } = endpoints
  const what = isExecutionSimulated === true ? 'simulated EVM chain, not a real one' : 'live events of the EVM chain'
  if (execution !== undefined) return [fact('stream', `${execution}   ${what}`)]
  return isMissing(endpoints, 'execution') ? [fact('stream', addressOf(endpoints, 'execution'))] : []
}

function accountLines({ endpoints }: CardInput): string[] {
  return endpoints.accountPage === undefined ? [] : [fact('page', `${endpoints.accountPage}   your usage and limits`)]
}

function documentLines({ endpoints }: CardInput): string[] {
  const url = documentsUrlOf(endpoints)
  return url === undefined ? [] : [fact('docs', `${url}/`)]
}

/** The documents are served by RPC and by the execution service. */
function documentsUrlOf({ rpc, execution }: Endpoints): string | undefined {
  const server = rpc ?? execution
  return server === undefined ? undefined : `${server}/docs`
}

function secretLines({ token, subscription }: CardInput): string[] {
  if (token === undefined) return []
  return [
    fact('token', `${token.secret}   shown once`),
    fact('', `the operator makes a new one: sluice token rotate ${subscription.name}`),
  ]
}

/** One working command per interface. Each line starts with its command, so that all can be pasted at once. */
function pasteLines({ subscription, endpoints, token, credential }: CardInput): string[] {
  if (token === undefined) return []
  const lines: string[] = []
  const header = `-H 'x-token: ${token.secret}'`
  if (usesNodes(subscription) && endpoints.rpc !== undefined) {
    const question = `'{"jsonrpc":"2.0","id":1,"method":"getSlot"}'`
    lines.push('# JSON-RPC call', `curl ${header} -H 'content-type: application/json' -d ${question} ${endpoints.rpc}`)
    if (endpoints.ws !== undefined)
      lines.push(
        '# WebSocket URL, valid for a minute, for clients that cannot set headers',
        `curl -X POST ${header} ${endpoints.rpc}/v1/ws-ticket`,
        '# WebSocket: slots for ten seconds',
        `npx wscat ${header} -w 10 -x '{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}' -c ${endpoints.ws}`,
      )
    if (endpoints.grpc !== undefined) lines.push('# Yellowstone gRPC', grpcurlLine(endpoints.grpc, header))
  }
  if (endpoints.rpc !== undefined)
    lines.push('# plan, limits and remaining budget', `curl ${header} ${endpoints.rpc}/v1/whoami`)
  if (credential !== undefined && endpoints.indexer !== undefined) {
    const login = `-u '${credential.record.username}:${credential.password}'`
    lines.push('# SQL', `curl ${login} ${header} --data 'select * from coverage' ${endpoints.indexer}`)
  }
  return lines.length > 0 ? ['', ...lines.map((line) => `  ${line}`)] : []
}

function grpcurlLine(address: string, header: string): string {
  const { protocol, hostname, port } = new URL(address)
  const [option, defaultPort] = protocol === 'https:' ? ['', 443] : ['-plaintext ', 80]
  return `grpcurl ${option}${header} ${hostname}:${port || defaultPort} geyser.Geyser/GetVersion`
}

/** The variables that docs/customers and the examples use. RPC also serves the account, for the customers of every product. */
function variableLines({ subscription, endpoints, token, credential }: CardInput): string[] {
  const isBundle = usesNodes(subscription)
  const variables: readonly (readonly [string, string | undefined])[] = [
    ['SLUICE_TOKEN', token?.secret],
    ['SLUICE_RPC', endpoints.rpc],
    ['SLUICE_WS', isBundle ? endpoints.ws : undefined],
    ['SLUICE_GRPC', isBundle || subscription.products.includes('shreds-decoded') ? endpoints.grpc : undefined],
    ['SLUICE_SQL', credential === undefined ? undefined : endpoints.indexer],
    ['SLUICE_SQL_USER', credential?.record.username],
    ['SLUICE_SQL_PASSWORD', credential?.password],
    ['SLUICE_SEND', endpoints.sender],
    ['SLUICE_STREAM', endpoints.execution],
    ['SLUICE_DOCS', documentsUrlOf(endpoints)],
  ]
  const given = variables.filter(([, value]) => value !== undefined)
  if (given.length === 0) return []
  return [
    '',
    '  # variables for the examples in the documentation',
    ...given.map(([name, value]) => `  export ${name}=${value}`),
  ]
}

/** The address, or why the card has none and which key of the config gives it one. */
function addressOf(endpoints: Endpoints, name: EndpointName): string {
  const reason = endpoints.missing.find((one) => one.name === name)?.reason
  return endpoints[name] ?? `(${reason ?? 'not running here'})`
}

function isMissing(endpoints: Endpoints, name: EndpointName): boolean {
  return endpoints.missing.some((one) => one.name === name)
}

function usesNodes({ products }: CardInput['subscription']): boolean {
  return products.includes('bundle') || products.includes('dedicated-node')
}

function fact(label: string, value: string): string {
  return `  ${label.padEnd(7)}${value}`
}

/** Methods with limits of their own that the card names. */
const METHODS_MAX = 5

/** Two lines, to fit a narrow terminal, and one of methods that have their own limits. */
function limitLines(limits: Limits): string[] {
  const number = (value: number | null): string => (value === null ? 'unlimited' : String(value))
  const rates = [
    `${number(limits.unitsPerSecond)} units/s`,
    `${number(limits.sendsPerSecond)} sends/s`,
    ...(limits.unitsPerMonth === null ? [] : [`${limits.unitsPerMonth} units/month`]),
  ]
  const permits = [
    `${number(limits.wsConnections)} WS connections`,
    `${number(limits.wsSubscriptions)} WS subscriptions`,
    `${number(limits.grpcStreams)} gRPC streams`,
  ]
  return [rates, permits, methodLimits(limits)].filter((line) => line.length > 0).map((line) => line.join(' · '))
}

function methodLimits({ methods }: Limits): string[] {
  const lines = Object.entries(methods).map(([method, { cost, perSecond }]) => {
    const values = [
      ...(perSecond === undefined ? [] : [`${perSecond}/s`]),
      ...(cost === undefined ? [] : [`${cost} units each`]),
    ]
    return `${method} ${values.join(', ')}`
  })
  const more = lines.length - METHODS_MAX
  return more > 0 ? [...lines.slice(0, METHODS_MAX), `${more} more methods in /v1/whoami`] : lines
}

function lastDay(validUntil: number): string {
  return new Date(validUntil - 1).toISOString().slice(0, 10)
}
