import { ServiceError } from '../../../../core/error.ts'
import { resolveAddress } from '../../../../platform/config/address-ref.ts'
import { resolveSecret, type SecretSources } from '../../../../platform/config/secret-ref.ts'
import { parseRemoteAddress, type RemoteAddress } from '../../../../platform/net/pinned-address.ts'
import { systemClock } from '../../../../platform/process/clock.ts'
import {
  type CompareOutcome,
  type CompareProgress,
  compareStreams,
  type StreamEndpoint,
} from '../../../../upstreams/compare/compare-streams.ts'
import type { Side } from '../../../../upstreams/compare/comparison.ts'
import { isAccount, STREAM_KINDS } from '../../../../upstreams/compare/stream-kinds.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { findSettings } from '../../../find-settings.ts'
import { printFacts, printJson, write } from '../../../output/print.ts'

export type BenchStreamFlags = CommonFlags & {
  first?: string
  second?: string
  firstToken?: string
  secondToken?: string
  tokenHeader?: string
  seconds?: string
  accounts?: string
  votes?: boolean
}

const SECONDS_DEFAULT = 30
const SECONDS_MAX = 86_400
const ACCOUNTS_MAX = 100
const PROTOCOLS = ['http:', 'https:']
/** Lines of progress where standard error is not a terminal. */
const LINE_MS = 10_000

export async function benchStream(this: CliContext, flags: BenchStreamFlags): Promise<void> {
  const { process } = this
  const countMs = secondsOf(flags.seconds) * 1000
  const accounts = accountsOf(flags.accounts)
  const first = await endpointOf(this, flags, 'first', flags.first ?? 'decoded')
  const second = await endpointOf(this, flags, 'second', flags.second ?? 'geyser')
  const stopped = Promise.withResolvers<void>()
  process.once('SIGINT', stopped.resolve)
  process.once('SIGTERM', stopped.resolve)
  const outcome = await compareStreams(
    { first, second, countMs, accounts, hasVotes: flags.votes === true },
    { clock: systemClock, stopped: stopped.promise, onProgress: createProgress(this, countMs) },
  ).finally(() => {
    process.off('SIGINT', stopped.resolve)
    process.off('SIGTERM', stopped.resolve)
  })
  if (process.stderr.isTTY) process.stderr.write('\r\u001B[K')
  const { failure } = outcome
  if (flags.json === true) printJson(this, resultOf(outcome, { first: first.kind, second: second.kind }))
  else if (outcome.result.transactions > 0 || failure === undefined) print(this, outcome, { first, second })
  if (failure === undefined) return
  throw new ServiceError('no-upstream', failure, {
    fix: 'Check token, plan and address of this stream; the figures above are those of the time before.',
  })
}

/** `KIND`, `KIND=ADDRESS` or `ADDRESS`, which then has the kind that is usual on this side. */
async function endpointOf(
  context: CliContext,
  flags: BenchStreamFlags,
  side: Side,
  text: string,
): Promise<StreamEndpoint> {
  const named = STREAM_KINDS.find((kind) => text === kind || text.startsWith(`${kind}=`))
  const kind = named ?? (side === 'first' ? 'decoded' : 'geyser')
  const given = named === undefined ? text : text.slice(named.length + 1)
  const sources: SecretSources = { env: context.process.env }
  const token = side === 'first' ? flags.firstToken : flags.secondToken
  const headers =
    token === undefined ? {} : { [headerOf(flags.tokenHeader)]: (await resolveSecret(token, sources)).reveal() }
  const address = given === '' ? await ownAddress(context, flags, side) : await addressOf(given, side, sources)
  return { kind, address, headers }
}

async function ownAddress(context: CliContext, flags: BenchStreamFlags, side: Side): Promise<RemoteAddress> {
  const { endpoints } = await findSettings(context, flags)
  const address = endpoints.grpc === undefined ? undefined : parseRemoteAddress(endpoints.grpc, PROTOCOLS)
  if (address !== undefined) return address
  throw new ServiceError('invalid-value', `the gRPC address of this machine is not known, for --${side}`, {
    fix: `Give it: --${side} decoded=https://rpc.example.net:10000`,
  })
}

async function addressOf(given: string, side: Side, sources: SecretSources): Promise<RemoteAddress> {
  const what = `the ${side} stream`
  const text = await resolveAddress({ what, given, protocols: PROTOCOLS, mayHaveQuery: false }, sources)
  const address = parseRemoteAddress(text, PROTOCOLS)
  if (address !== undefined) return address
  // The text is not quoted: it may contain a secret.
  throw new ServiceError('invalid-value', `--${side} is neither decoded nor geyser, and not a usable address`, {
    fix: `Write --${side} decoded, --${side} geyser=https://node.example.net:10000, or a reference such as geyser=env:NAME.`,
  })
}

function headerOf(name = 'x-token'): string {
  if (/^[a-z0-9-]{1,64}$/.test(name)) return name
  throw new ServiceError('invalid-value', `"${name}" is not the name of a header: use a-z, 0-9 and hyphens`)
}

function secondsOf(text: string | undefined): number {
  if (text === undefined) return SECONDS_DEFAULT
  const seconds = Number(text)
  if (/^\d+$/.test(text) && seconds >= 1 && seconds <= SECONDS_MAX) return seconds
  throw new ServiceError('invalid-value', `"${text}" is not a number of seconds from 1 to ${SECONDS_MAX}`)
}

function accountsOf(text: string | undefined): string[] {
  const accounts = text === undefined ? [] : text.split(',')
  if (accounts.length > ACCOUNTS_MAX)
    throw new ServiceError('invalid-value', `--accounts has ${accounts.length} addresses; at most ${ACCOUNTS_MAX}`)
  const wrong = accounts.find((account) => !isAccount(account))
  if (wrong === undefined) return accounts
  throw new ServiceError('invalid-value', `"${wrong}" is not an address of 32 bytes in base58`)
}

/** One line that is written over on a terminal, else a line now and then. Standard output has the result only. */
function createProgress(context: CliContext, countMs: number): (progress: CompareProgress) => void {
  const { stderr } = context.process
  let writtenMs = 0
  return ({ countedMs, result }) => {
    const { transactions, firstShare } = result
    const time = `${Math.floor(countedMs / 1000)} of ${countMs / 1000} s`
    const line =
      firstShare === undefined
        ? 'waiting for transactions of both streams'
        : `${time}: ${transactions} transactions, ${percent(firstShare)} first by the first stream`
    if (stderr.isTTY) stderr.write(`\r\u001B[K${line}`)
    else if (countedMs - writtenMs >= LINE_MS) {
      writtenMs = countedMs
      write(context, line)
    }
  }
}

/** As JSON has it: times in milliseconds with three decimals. */
function resultOf({ result, countedMs, failure }: CompareOutcome, kinds: Record<Side, string>) {
  const { leadMs } = result
  const lead = leadMs && Object.fromEntries(Object.entries(leadMs).map(([name, ms]) => [name, rounded(ms)]))
  return {
    ...kinds,
    seconds: rounded(countedMs / 1000),
    ...result,
    firstShare: result.firstShare ?? null,
    secondShare: result.secondShare ?? null,
    leadMs: lead ?? null,
    failure: failure ?? null,
  }
}

function print(
  context: CliContext,
  { result, countedMs }: CompareOutcome,
  { first, second }: Record<Side, StreamEndpoint>,
): void {
  const { leadMs } = result
  const ms = (value: number) => `${rounded(value)} ms`
  printFacts(context, [
    ['first stream', first.kind],
    ['second stream', second.kind],
    ['counted', `${rounded(countedMs / 1000)} s`],
    ['transactions', result.transactions],
    ['first earlier', `${result.firstEarlier} and ${result.onlyFirst} alone: ${percent(result.firstShare)}`],
    ['second earlier', `${result.secondEarlier} and ${result.onlySecond} alone: ${percent(result.secondShare)}`],
    [
      'lead of the first',
      leadMs &&
        `mean ${ms(leadMs.mean)}, p50 ${ms(leadMs.p50)}, p90 ${ms(leadMs.p90)}, p99 ${ms(leadMs.p99)}, from ${ms(leadMs.min)} to ${ms(leadMs.max)}`,
    ],
    ['not compared', result.pending === 0 ? undefined : `${result.pending} that came last`],
    ['repeated', `${result.repeated.first} and ${result.repeated.second}`],
  ])
}

function percent(share: number | undefined): string {
  return share === undefined ? '-' : `${(share * 100).toFixed(2)} %`
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000
}
