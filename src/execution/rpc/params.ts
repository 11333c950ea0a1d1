import type { Hex } from '../../contract/stream-events.ts'
import { RpcFailure } from './failure.ts'

/** Strict parsers of Ethereum JSON-RPC parameters: an invalid one is refused by name. */

export type BlockTag = 'latest' | 'pending' | 'safe' | 'finalized' | 'earliest'
export type BlockRef = { tag: BlockTag } | { number: number }

const TAGS: ReadonlySet<unknown> = new Set(['latest', 'pending', 'safe', 'finalized', 'earliest'])
const QUANTITY = /^0x(0|[1-9a-fA-F][0-9a-fA-F]*)$/
const HEX = /^0x[0-9a-fA-F]*$/

export function blockRef(given: unknown, name: string): BlockRef {
  if (TAGS.has(given)) return { tag: given as BlockTag }
  return { number: quantity(given, name) }
}

export function quantity(given: unknown, name: string): number {
  if (typeof given !== 'string' || !QUANTITY.test(given))
    throw invalid(`${name} is a hex quantity such as 0x1b4, or a block tag where one is meant`)
  const value = Number(given)
  // No block or transaction has such a number, so nothing is found.
  return Number.isSafeInteger(value) ? value : Number.MAX_SAFE_INTEGER
}

export function hash32(given: unknown, name: string): Hex {
  if (!isBytes(given, 32)) throw invalid(`${name} is 32 bytes in hex`)
  return given.toLowerCase() as Hex
}

export function flag(given: unknown, name: string): boolean {
  if (given === undefined) return false
  if (typeof given !== 'boolean') throw invalid(`${name} is true or false`)
  return given
}

export type LogFilter = {
  readonly blockHash?: Hex
  readonly from: BlockRef
  readonly to: BlockRef
  readonly addresses: ReadonlySet<string> | undefined
  readonly topics: readonly (ReadonlySet<string> | undefined)[]
}

const FILTER_KEYS = ['fromBlock', 'toBlock', 'blockHash', 'address', 'topics']
const VALUES_MAX = 256
const TOPICS_MAX = 4

export function logFilter(given: unknown): LogFilter {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw invalid('the filter is an object')
  const filter = given as Record<string, unknown>
  const unknown = Object.keys(filter).find((key) => !FILTER_KEYS.includes(key))
  if (unknown !== undefined) throw invalid(`a filter has no field ${JSON.stringify(unknown.slice(0, 64))}`)
  const { fromBlock, toBlock, blockHash, address, topics } = filter
  const isGiven = (value: unknown): boolean => value !== undefined && value !== null
  if (isGiven(blockHash) && (isGiven(fromBlock) || isGiven(toBlock)))
    throw invalid('blockHash goes without fromBlock and toBlock')
  return {
    ...(isGiven(blockHash) ? { blockHash: hash32(blockHash, 'blockHash') } : {}),
    from: blockRef(fromBlock ?? 'latest', 'fromBlock'),
    to: blockRef(toBlock ?? 'latest', 'toBlock'),
    addresses: isGiven(address) && !isEmptyList(address) ? choice(address, 20, 'address') : undefined,
    topics: isGiven(topics) ? topicList(topics) : [],
  }
}

function topicList(given: unknown): (ReadonlySet<string> | undefined)[] {
  if (!Array.isArray(given) || given.length > TOPICS_MAX) throw invalid(`topics is a list of up to ${TOPICS_MAX}`)
  return given.map((topic) => (isAnyTopic(topic) ? undefined : choice(topic, 32, 'a topic')))
}

/** As geth reads a filter: null matches any topic, and so does a list without a topic, or with null among its topics. */
function isAnyTopic(given: unknown): boolean {
  return given === null || isEmptyList(given) || (Array.isArray(given) && given.includes(null))
}

function isEmptyList(given: unknown): boolean {
  return Array.isArray(given) && given.length === 0
}

function choice(given: unknown, bytes: number, name: string): ReadonlySet<string> {
  const values = Array.isArray(given) ? given : [given]
  if (values.length > VALUES_MAX || !values.every((value) => isBytes(value, bytes)))
    throw invalid(`${name} is ${bytes} bytes in hex, or a list of up to ${VALUES_MAX}`)
  return new Set((values as string[]).map((value) => value.toLowerCase()))
}

function isBytes(given: unknown, bytes: number): given is string {
  return typeof given === 'string' && given.length === 2 + 2 * bytes && HEX.test(given)
}

function invalid(message: string): RpcFailure {
  return new RpcFailure('invalid-params', message)
}
