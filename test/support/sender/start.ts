import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Localnet } from '../../../src/localnet/service.ts'
import { type AppendFile, openAppendFile } from '../../../src/platform/files/append.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import type { MetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import { parseSenderOptions, type SenderOptionsInput } from '../../../src/sender/options.ts'
import { type Sender, type SenderDeps, startSender } from '../../../src/sender/service.ts'
import { openCounterInWorker } from '../../../src/sender/tips/counter-in-worker.ts'
import { TipLedger } from '../../../src/sender/tips/ledger.ts'
import { decodeBase58, encodeBase58 } from '../../../src/solana/crypto/base58.ts'
import { createSigningKey, type SigningKey } from '../../../src/solana/crypto/ed25519.ts'
import {
  buildLegacyMessage,
  type Instruction,
  memoInstruction,
  signMessage,
  transferInstruction,
} from '../../../src/solana/transaction/build.ts'
import { type NodeOptionsInput, parseUpstreamsOptions } from '../../../src/upstreams/options.ts'
import { startUpstreams, type Upstreams } from '../../../src/upstreams/service.ts'
import { AMPLE_HELD_BYTES } from '../gateway/held-bytes.ts'
import { startQuickLocalnet, untilBlock } from '../solana/localnet.ts'

export const MEMO_PROGRAM = decodeBase58('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr')
export const TIP_KEYS = [201, 202].map((n) => createSigningKey(new Uint8Array(32).fill(n)))
export const TIP_ACCOUNTS = TIP_KEYS.map(({ publicKey }) => encodeBase58(publicKey))
export const MIN_TIP = 1_000_000n

/** A test wallet, by number. */
export const walletOf = (n: number): SigningKey => {
  const seed = new Uint8Array(32).fill(7)
  new DataView(seed.buffer).setUint32(0, n)
  return createSigningKey(seed)
}

export function tipInstruction(from: SigningKey, lamports = MIN_TIP, account = 0): Instruction {
  return transferInstruction({ from: from.publicKey, to: (TIP_KEYS[account] as SigningKey).publicKey, lamports })
}

/** A legacy transaction with a tip and a memo that makes it unique. */
export function tipped(payer: SigningKey, blockhash: string, memo: string, lamports = MIN_TIP): Uint8Array {
  const instructions = [tipInstruction(payer, lamports), memoInstruction(MEMO_PROGRAM, memo)]
  return sign(payer, blockhash, instructions)
}

export function sign(payer: SigningKey, blockhash: string, instructions: readonly Instruction[]): Uint8Array {
  const message = buildLegacyMessage({
    feePayer: payer.publicKey,
    recentBlockhash: decodeBase58(blockhash),
    instructions,
  })
  return signMessage(message, [payer])
}

/** A transaction with this many signers, at most ten, all test wallets. */
export function manySigned(signatures: number, blockhash: string, memo: string): Uint8Array {
  const signers = Array.from({ length: signatures }, (_, n) => walletOf(n))
  const [payer] = signers as [SigningKey]
  const keys = signers.map(({ publicKey }) => publicKey)
  const instructions = [tipInstruction(payer), memoInstruction(MEMO_PROGRAM, memo, keys)]
  const recentBlockhash = decodeBase58(blockhash)
  return signMessage(buildLegacyMessage({ feePayer: payer.publicKey, recentBlockhash, instructions }), signers)
}

export const signatureOf = (wire: Uint8Array) => encodeBase58(wire.subarray(1, 65))

export type Response = {
  readonly status: number
  readonly headers: Headers
  readonly result?: unknown
  readonly error?: { code: number; message: string; data: Record<string, unknown> }
  readonly text: string
}

export type ReceiptBody = {
  readonly state: string
  readonly final: boolean
  readonly message?: string
  readonly tip: { readonly account: string; readonly lamports: number; readonly moved: boolean | null } | null
  readonly landed: { readonly slot: number; readonly confirmation: string; readonly error: unknown } | null
  readonly expired_at_height: number | null
  readonly attempts: readonly {
    readonly path: string
    readonly to: string
    readonly response: string
    readonly message?: string
    readonly times: number
  }[]
}

export type TestSender = AsyncDisposable & {
  readonly url: string
  readonly sender: Sender
  readonly registry: MetricsRegistry
  call(method: string, ...params: unknown[]): Promise<Response>
  send(wire: Uint8Array, options?: object): Promise<Response>
  receipt(signature: string, query?: string): Promise<{ status: number; body: ReceiptBody }>
}

export type SenderGiven = SenderOptionsInput & {
  readonly folder?: string
  readonly nodes?: NodeOptionsInput[]
  /** The journal files, to simulate disk failures. */
  readonly disk?: (file: AppendFile) => AppendFile
  readonly lifecycle?: SenderDeps['lifecycle']
  readonly isWarmedUp?: boolean
  readonly log?: SenderDeps['log']
}

/** The sender over the given nodes, with its journal in a new folder. */
export async function startTestSender({
  folder,
  nodes = [],
  disk = (file) => file,
  lifecycle,
  isWarmedUp,
  log = silentLogger,
  ...options
}: SenderGiven): Promise<TestSender> {
  await using opening = new AsyncDisposableStack()
  const state = folder ?? mkdtempSync(join(tmpdir(), 'sluice-sender-'))
  if (folder === undefined) opening.defer(() => rmSync(state, { recursive: true, force: true }))
  const registry = opening.use(createMetricsRegistry())
  const deps = { log, clock: systemClock, random: secureRandom, registry, env: {} }
  const upstreams: Upstreams = opening.use(
    await startUpstreams(parseUpstreamsOptions({ allowPrivate: true, nodes }), deps),
  )
  const journalMode = options.journalSync === false ? 'write' : 'write-through'
  const journal = async (name: string) => disk(opening.use(await openAppendFile(join(state, name), journalMode)))
  const counter = await openCounterInWorker(state, deps)
  const tipLedger = opening.use(new TipLedger({ ...deps, counter, onFailure() {}, onLoss() {}, onRecovery() {} }))
  const sender = opening.use(
    await startSender(
      {
        ...parseSenderOptions({ tipAccounts: TIP_ACCOUNTS, ...options }),
        listener: { host: '127.0.0.1', port: 0 },
        isWarmedUp,
      },
      {
        ...deps,
        upstream: upstreams.shared,
        journalFiles: [await journal('journal-0'), await journal('journal-1')],
        tipLedger,
        lifecycle,
        checkThreads: 1,
        identity: createSigningKey(new Uint8Array(32).fill(99)),
        version: 'test',
        heldBytes: AMPLE_HELD_BYTES,
        listenerMetrics: { onRefused() {}, onNotAfter() {} },
      },
    ),
  )
  const url = `http://127.0.0.1:${sender.address.port}`
  const call = async (method: string, ...params: unknown[]) => post(url, { jsonrpc: '2.0', id: 1, method, params })
  const opened = opening.move()
  return {
    url,
    sender,
    registry,
    call,
    send: (wire, config) =>
      call('sendTransaction', Buffer.from(wire).toString('base64'), { encoding: 'base64', ...config }),
    async receipt(signature, query = '') {
      const response = await fetch(`${url}/v1/transactions/${signature}${query}`)
      return { status: response.status, body: (await response.json()) as ReceiptBody }
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

export async function post(url: string, body: unknown): Promise<Response> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  const reply = text === '' ? {} : (JSON.parse(text) as object)
  return { status: response.status, headers: response.headers, text, ...reply }
}

export const nodeOf = (localnet: Localnet): NodeOptionsInput => ({
  name: 'localnet',
  rpc: `http://127.0.0.1:${localnet.rpc.port}`,
  ws: `ws://127.0.0.1:${localnet.ws.port}`,
})

/** Resolves once the chain has the transaction. */
export async function fund({ chain }: Localnet, address: string, lamports: bigint): Promise<void> {
  await chain.airdrop(address, lamports)
  await untilBlock(chain, () => chain.account(address, 'processed') != null)
}

/** A chain with short slots, funded wallets and a sender. */
export async function startChainAndSender(options: SenderGiven = {}, wallets = 1) {
  await using opening = new AsyncDisposableStack()
  const localnet = opening.use(await startQuickLocalnet())
  const wallet = (_: unknown, n: number) => encodeBase58(walletOf(n).publicKey)
  await Promise.all([
    ...Array.from({ length: wallets }, wallet).map((address) => fund(localnet, address, 10_000_000_000n)),
    ...TIP_ACCOUNTS.map((account) => fund(localnet, account, 1_000_000_000n)),
  ])
  const sender = opening.use(await startTestSender({ nodes: [nodeOf(localnet)], ...options }))
  const opened = opening.move()
  return {
    localnet,
    sender,
    blockhash: () => localnet.chain.latestBlockhash('processed').blockhash,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
