import type { AppendFile } from '../platform/files/append.ts'
import { createHttpPool } from '../platform/http/client/pool.ts'
import { createHeldBytes } from '../platform/http/held-bytes.ts'
import { createPinnedAddress } from '../platform/net/pinned-address.ts'
import { silentLogger } from '../platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { encodeBase58 } from '../solana/crypto/base58.ts'
import { createSigningKey } from '../solana/crypto/ed25519.ts'
import {
  buildLegacyMessage,
  memoInstruction,
  SYSTEM_PROGRAM,
  signMessage,
  transferInstruction,
} from '../solana/transaction/build.ts'
import { TRANSACTION_LIMITS } from '../solana/transaction/types.ts'
import type { CallNode } from '../upstreams/call-node.ts'
import type { SignatureVerifier } from './accept/signature-verifier.ts'
import { type Path, sendBody } from './dispatch/dispatch.ts'
import { openParts, type PartsDeps, type PartsOptions } from './parts.ts'
import { TipLedger } from './tips/ledger.ts'

export type WarmUpDeps = Pick<PartsDeps, 'clock' | 'random' | 'log' | 'version' | 'docsUrl'> & {
  /** That of the service: the code of its threads is compiled too. */
  readonly verifier: SignatureVerifier
}

/** Rounds, each with new parts: V8 discards code that was compiled for the functions of one instance only. */
const ROUNDS = 4
/** In each of them. */
const TRANSACTIONS = 256
const UNDER_WAY = 16
/** A slow machine starts with code that is not compiled to the end. */
const TIME_MS_MAX = 1000
/** More for what is under way at the end: a check that is still queued would delay the first transaction of a customer. */
const LAST_MS_MAX = 250
const PAYERS = 16
const SLOT = 1000
const SLOT_MS = 400
const HOST = '127.0.0.1'
const UNLIMITED = 1_000_000
/** As an operator's limits could be lower than what a round needs, from one address. Those of the checking threads hold: they are the service's. */
const LIMITS = {
  ...TRANSACTION_LIMITS,
  perAddressPerSecond: UNLIMITED,
  perAddressBurst: UNLIMITED,
  signaturesPerAddressPerSecond: UNLIMITED,
  perPayerPerSecond: UNLIMITED,
  perPayerBurst: UNLIMITED,
  checkingMax: UNLIMITED,
  checkDelayMsMax: TIME_MS_MAX,
  pendingMax: UNLIMITED,
  pendingPerAddressMax: UNLIMITED,
  pendingPerPayerMax: UNLIMITED,
  receiptsMax: TRANSACTIONS,
}

/**
 * Runs other parts on synthetic transactions, from the request to the receipt, so that the code of the event loop and of the checking threads is compiled
 * before the listener opens. Their paths send nothing, their journal writes nothing, and their receipts, metrics and tips are dropped with them. Returns how
 * many transactions were accepted: those that are refused would warm the wrong code.
 */
export async function warmUp(options: PartsOptions, deps: WarmUpDeps): Promise<number> {
  const { clock, random, log } = deps
  const endMs = clock.monotonicMs() + TIME_MS_MAX
  let accepted = 0
  try {
    // None of the operator's: what a local program sends to the port of a round is neither forwarded nor recorded.
    const tipAccount = random.bytes(32)
    const bodyOf = createBodies(tipAccount, BigInt(options.minTipLamports))
    for (let round = 0; round < ROUNDS && clock.monotonicMs() < endMs; round++) {
      accepted += await runRound(options, deps, { tipAccount, bodyOf, endMs })
    }
  } catch (error) {
    log.warn({ err: error }, 'the code could not be warmed up; the first transactions take longer')
  }
  log.debug({ accepted, of: ROUNDS * TRANSACTIONS }, 'the code was warmed up')
  return accepted
}

type Round = {
  readonly tipAccount: Uint8Array
  readonly bodyOf: (n: number) => string
  readonly endMs: number
}

async function runRound(
  options: PartsOptions,
  { clock, random, version, docsUrl, verifier }: WarmUpDeps,
  { tipAccount, bodyOf, endMs }: Round,
): Promise<number> {
  await using opening = new AsyncDisposableStack()
  const leaders = createLeadersPath()
  const parts = opening.use(
    await openParts(
      {
        ...options,
        tipAccounts: [encodeBase58(tipAccount)],
        trustedProxies: [],
        limits: { ...options.limits, ...LIMITS },
      },
      {
        paths: [leaders, createOtherPath()],
        leaders,
        connections: () => 0,
        callNode,
        ws: { subscribe: () => undefined },
        bestSlot: () => SLOT,
        slotMs: () => SLOT_MS,
        journalFiles: [createUnwrittenFile(), createUnwrittenFile()],
        tipLedger: opening.use(createNullLedger(clock)),
        registry: opening.use(createMetricsRegistry()),
        listenerMetrics: { onRefused() {}, onNotAfter() {} },
        heldBytes: createHeldBytes({ bytesMax: UNLIMITED, ownerBytesMax: UNLIMITED, waitMs: 0 }, clock),
        log: silentLogger,
        clock,
        random,
        version,
        docsUrl,
      },
    ),
  )
  const underWay = Math.min(UNDER_WAY, options.limits.checkingMax)
  const server = await parts.startServer({ host: HOST, port: 0 }, verifier)
  // The client of the HTTP paths, so that its code is compiled as well.
  const remote = { host: HOST, port: server.address.port, secure: false, path: '/' }
  const address = createPinnedAddress(remote, { allowPrivate: true })
  const pool = opening.use(createHttpPool({ connectionsMax: underWay }, { clock, address }))
  // Closed before its client: the kernel keeps the ports of the side that closes first, and one of the client could be that of a listener.
  opening.use(server)

  function post(body: string): Promise<boolean> {
    const deadlineMs = Math.max(1, endMs + LAST_MS_MAX - clock.monotonicMs())
    return new Promise((resolve) => {
      pool.call({ body, bodyBytes: body.length, deadlineMs }, (outcome) =>
        resolve(outcome.kind === 'reply' && outcome.body.includes('"result"')),
      )
    })
  }

  let next = 0
  let accepted = 0
  async function postInTurn(): Promise<void> {
    while (next < TRANSACTIONS && clock.monotonicMs() < endMs) {
      const body = bodyOf(next)
      next += 1
      if (await post(body)) accepted += 1
    }
  }
  await Promise.all(Array.from({ length: underWay }, postInTurn))
  return accepted
}

/** The same transactions for all rounds, each signed when it is needed first. Their blockhash is none of a chain. */
function createBodies(tipAccount: Uint8Array, lamports: bigint): (n: number) => string {
  const payers = Array.from({ length: PAYERS }, (_, n) => createSigningKey(new Uint8Array(32).fill(n + 1)))
  const bodies: string[] = []

  function makeBody(n: number): string {
    const payer = payers[n % PAYERS] as (typeof payers)[number]
    const from = payer.publicKey
    const message = buildLegacyMessage({
      feePayer: from,
      recentBlockhash: new Uint8Array(32),
      instructions: [
        transferInstruction({ from, to: tipAccount, lamports }),
        memoInstruction(new Uint8Array(32).fill(1), `warm-up ${n}`),
      ],
    })
    return sendBody(Buffer.from(signMessage(message, [payer])).toString('base64'))
  }

  return (n) => {
    const body = bodies[n] ?? makeBody(n)
    bodies[n] = body
    return body
  }
}

/** V8 compiles a function that is always the same one into its caller, and undoes that at the first other one. So the two paths have a function each. */
function createLeadersPath(): Path {
  return {
    name: 'leaders',
    isOpen: true,
    hasSpare: true,
    send: (_job, report) => queueMicrotask(() => report({ to: 'leader', response: 'taken', message: '' })),
  }
}

function createOtherPath(): Path {
  return {
    name: 'other',
    isOpen: true,
    hasSpare: true,
    send: (_job, report) => void setImmediate(() => report({ to: 'node', response: 'taken', message: '' })),
  }
}

/** A node where every transaction lands. */
const callNode: CallNode = (method, [first]) => {
  const context = { slot: SLOT }
  switch (method) {
    case 'isBlockhashValid':
      return Promise.resolve({ context, value: true })
    case 'getMultipleAccounts': {
      const account = { lamports: Number.MAX_SAFE_INTEGER, owner: encodeBase58(SYSTEM_PROGRAM), data: ['', 'base64'] }
      return Promise.resolve({ context, value: (first as string[]).map(() => account) })
    }
    case 'getSignatureStatuses': {
      const status = { slot: SLOT, err: null, confirmationStatus: 'confirmed' }
      return Promise.resolve({ context, value: (first as string[]).map(() => status) })
    }
    default:
      return Promise.resolve(undefined)
  }
}

function createUnwrittenFile(): AppendFile {
  return {
    path: '',
    size: () => Promise.resolve(0),
    async *lines() {},
    byteAt: () => Promise.resolve(undefined),
    writeAt: (at, text) => Promise.resolve(at + text.length),
    cutTo: () => Promise.resolve(),
    sync: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

function createNullLedger(clock: PartsDeps['clock']): TipLedger {
  const counter = { countedMs: 0, count: () => Promise.resolve(), [Symbol.asyncDispose]: () => Promise.resolve() }
  return new TipLedger({ counter, clock, onFailure() {}, onLoss() {}, onRecovery() {} })
}
