import type { CreatedSubscription } from '../access/provisioning/subscriptions.ts'
import type { Limits } from '../contract/limits.ts'
import { printAddressPort } from '../host/ip-range.ts'
import type { Endpoints } from './endpoints.ts'

export type CardInput = CreatedSubscription & { readonly limits: Limits; readonly endpoints: Endpoints }

/** What the operator pastes to the customer. Holds the secrets of the subscription, so it is printed once and kept nowhere. */
export function handoverCard(input: CardInput): string {
  const { subscription } = input
  const until = subscription.validUntil === null ? 'no end' : `valid until ${lastDay(subscription.validUntil)}`
  const sections = [
    [`Sluice subscription  ${subscription.name}          plan ${subscription.plan}, ${until}`],
    bundleLines(input),
    indexerLines(input),
    shredLines(input),
    senderLines(input),
    secretLines(input),
    usageLines(input),
  ]
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n')}\n`
}

function bundleLines({ subscription, endpoints, limits }: CardInput): string[] {
  if (!subscription.products.includes('bundle') && !subscription.products.includes('dedicated-node')) return []
  return [
    fact('RPC', endpoints.rpc ?? NOT_IN_BUILD),
    fact('WS', endpoints.ws ?? NOT_IN_BUILD),
    fact('gRPC', endpoints.grpc ?? NOT_IN_BUILD),
    fact('limits', limitWords(limits)),
  ]
}

function indexerLines({ subscription, endpoints, credential }: CardInput): string[] {
  if (!subscription.products.includes('indexer')) return []
  const lines = [fact('SQL', endpoints.indexer ?? NOT_IN_BUILD)]
  if (credential !== undefined)
    lines.push(fact('', `user ${credential.record.username}   password ${credential.password}   shown once`))
  return lines
}

function shredLines({ subscription, destination }: CardInput): string[] {
  if (!subscription.products.includes('shreds-raw')) return []
  if (destination === undefined) return [fact('shreds', 'no destination yet; give the operator one IP:PORT')]
  return [fact('shreds', `UDP to ${printAddressPort(destination.ip, destination.port)} (${destination.proof})`)]
}

/** Open to everybody; the tip is the ticket. */
function senderLines({ endpoints: { sender, tipAccounts = [] } }: CardInput): string[] {
  if (sender === undefined) return []
  return [
    fact('sender', `${sender}   no token, a tip in each transaction; the accounts: curl ${sender}/tips`),
    ...tipAccounts.map((account) => fact('', account)),
  ]
}

function secretLines({ token }: CardInput): string[] {
  return token === undefined ? [] : [fact('token', `${token.secret}   shown once; ask the operator for a new one`)]
}

/** One working line per way of use, only for doors that are open. */
function usageLines({ subscription, endpoints, token, credential }: CardInput): string[] {
  if (token === undefined) return []
  const lines: string[] = []
  const header = `-H 'x-token: ${token.secret}'`
  if (subscription.products.includes('bundle') && endpoints.rpc !== undefined) {
    const question = `'{"jsonrpc":"2.0","id":1,"method":"getSlot"}'`
    lines.push(`  curl ${header} -H 'content-type: application/json' -d ${question} ${endpoints.rpc}`)
    // For clients that can set no header on a WebSocket: answers an address that opens for a minute.
    if (endpoints.ws !== undefined) lines.push(`  curl -X POST ${header} ${endpoints.rpc}/v1/ws-ticket`)
    lines.push(`  usage  curl ${header} ${endpoints.rpc}/v1/whoami`)
  }
  if (credential !== undefined && endpoints.indexer !== undefined) {
    lines.push(
      `  curl -u '${credential.record.username}:${credential.password}' ${header} --data 'select * from coverage' ${endpoints.indexer}`,
    )
  }
  return lines.length > 0 ? ['', ...lines] : []
}

const NOT_IN_BUILD = '(not available in this build)'

function fact(label: string, value: string): string {
  return `  ${label.padEnd(7)}${value}`
}

function limitWords(limits: Limits): string {
  const number = (value: number | null): string => (value === null ? 'unlimited' : String(value))
  return [
    `${number(limits.unitsPerSecond)} units/s`,
    `${number(limits.sendsPerSecond)} sends/s`,
    `${number(limits.wsConnections)} WS connections`,
    `${number(limits.wsSubscriptions)} WS subscriptions`,
    `${number(limits.grpcStreams)} gRPC streams`,
    ...(limits.unitsPerMonth === null ? [] : [`${limits.unitsPerMonth} units/month`]),
  ].join(' · ')
}

function lastDay(validUntil: number): string {
  return new Date(validUntil - 1).toISOString().slice(0, 10)
}
