import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { type Logger, silentLogger } from '../../platform/telemetry/logger.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { CONSENSUS_NAMES, type LocalnetOptionsInput, parseLocalnetOptions } from '../options.ts'
import { AccountStore } from './accounts.ts'
import type { Head } from './bank.ts'
import type { LocalChain } from './chain.ts'
import { LedgerFile } from './ledger-file.ts'
import type { AccountWrite, Block } from './model.ts'
import { openChain } from './open.ts'
import type { ChainState } from './state.ts'
import { ChainStore } from './store.ts'

const SOL = 1_000_000_000n
const alice = encodeBase58(new Uint8Array(32).fill(7))

async function open(stateDir: string, input: LocalnetOptionsInput = {}) {
  const clock = createManualClock()
  const options = parseLocalnetOptions({ ...input, stateDir })
  const opened = await openChain(options, { clock, log: silentLogger, random: createSeededRandom(5) })
  return { ...opened, clock, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() }
}

/** Everything a client can read from the chain, except values that change with time. */
function readVisibleState(chain: LocalChain) {
  const slots = Array.from(
    { length: chain.slot('processed') + 1 - chain.firstAvailableSlot() },
    (_, i) => chain.firstAvailableSlot() + i,
  )
  return {
    genesisHash: chain.genesisHash,
    identity: chain.identity,
    faucet: chain.faucet,
    slot: chain.slot('processed'),
    count: chain.transactionCount('processed'),
    accounts: new Map(
      [...chain.allAccounts('processed')].map(([address, account]) => [
        address,
        { ...account, data: Buffer.from(account.data) },
      ]),
    ),
    blocks: slots.map((slot) => {
      const {
        systemWrites: _systemWrites,
        transactions,
        ...block
      } = chain.block(slot) as NonNullable<ReturnType<LocalChain['block']>>
      return {
        ...block,
        entries: block.entries,
        transactions: transactions.map(({ writes: _writes, ...record }) => record),
      }
    }),
    history: [...chain.signaturesOf(alice)].map(({ signature }) => signature),
  }
}

async function run(chain: LocalChain, blocks: number) {
  for (let i = 0; i < blocks; i++) {
    if (i % 3 === 0) assert((await chain.airdrop(alice, SOL + BigInt(i))).ok)
    await chain.produceBlock()
  }
}

for (const consensus of CONSENSUS_NAMES) {
  test(`a closed chain continues with its complete state: ${consensus}`, async () => {
    using folder = makeTestFolder()
    const first = await open(folder.path, { consensus })
    await run(first.chain, 40)
    const before = readVisibleState(first.chain)
    await first[Symbol.asyncDispose]()

    await using second = await open(folder.path, { consensus })
    assert.deepEqual(readVisibleState(second.chain), before)
    assert.equal(second.chain.openSlot(), before.slot + 1)
    assert.deepEqual(second.chain.block(before.slot)?.blockhash, before.blocks.at(-1)?.blockhash)
    // A blockhash from before the restart is still valid, and the duplicate of a landed transaction is still detected.
    const landed = second.chain.transaction(before.history[0] as string)
    assert(landed)
    assert.deepEqual(await second.chain.submit(landed.wire), { ok: false, reason: 'rejected', err: 'AlreadyProcessed' })
    await run(second.chain, 3)
    assert.equal(second.chain.block(before.slot + 1)?.previousBlockhash, before.blocks.at(-1)?.blockhash)
    assert.equal(
      second.chain.account(alice, 'processed')?.lamports,
      (before.accounts.get(alice)?.lamports as bigint) + SOL,
    )
  })

  test(`a killed chain continues from its last block: ${consensus}`, async () => {
    using folder = makeTestFolder()
    using image = makeTestFolder()
    await using first = await open(folder.path, { consensus })
    await run(first.chain, 10)
    const before = readVisibleState(first.chain)
    // In the open slot when the process dies, so it was never reported as part of a block.
    assert((await first.chain.airdrop(alice, 77n * SOL)).ok)
    cpSync(folder.path, image.path, { recursive: true })

    await using second = await open(image.path, { consensus })
    assert.deepEqual(readVisibleState(second.chain), before)
  })

  test(`blocks have the same account writes after a restart, also when they are finalized: ${consensus}`, async () => {
    using folder = makeTestFolder()
    using image = makeTestFolder()
    const options = { consensus, candidateBanksPercent: 50 }
    await using first = await open(folder.path, options)
    await run(first.chain, 40)
    const [finalized, head] = [first.chain.slot('finalized'), first.chain.slot('processed')]
    const before = readWrites(first.chain, head)
    cpSync(folder.path, image.path, { recursive: true })

    await using second = await open(image.path, options)
    assert.deepEqual(readWrites(second.chain, head), before)
    assert.equal(second.chain.firstSlotWithWrites(), 0)
    const reported: unknown[] = []
    second.chain.subscribe((event) => {
      if (event.kind === 'finalized' && event.block.slot <= head) reported.push(writesOf(event.block))
    })
    await run(second.chain, 32)
    // Under Alpenglow a chain that continues takes its head for finalized.
    assert.deepEqual(reported, consensus === 'tower' ? before.slice(finalized + 1) : [])
  })
}

function readWrites(chain: LocalChain, last: number) {
  return Array.from({ length: last + 1 }, (_, slot) => writesOf(chain.block(slot) as Block))
}

/** One line per write, with the hash of the data, so that a difference is readable. */
function writesOf({ slot, transactions, systemWrites }: Block): string[] {
  const line = ({ address, account, slot: at, writeVersion, signature }: AccountWrite) => {
    const { data = '', ...rest } = account ?? {}
    const hash = createHash('sha256').update(data).digest('hex')
    return [slot, at, writeVersion, address, signature, hash, Object.values(rest)].join(' ')
  }
  return [...transactions.flatMap(({ writes }) => writes.map(line)), ...systemWrites.map(line)]
}

test('a chain that changed its consensus continues, and no block is less finalized than before', async () => {
  using folder = makeTestFolder()
  const modes = ['tower', 'alpenglow', 'tower', 'tower', 'alpenglow'] as const
  let before: ReturnType<typeof readVisibleState> | undefined
  let finalized = 0
  let genesis: unknown
  for (const consensus of modes) {
    await using opened = await open(folder.path, { consensus, candidateBanksPercent: 50 })
    const { chain } = opened
    if (before) assert.deepEqual(readVisibleState(chain), before)
    assert.ok(chain.slot('finalized') >= finalized, `${chain.slot('finalized')} after ${finalized}`)
    assert.deepEqual(chain.alpenglowGenesis(), genesis)
    await run(chain, 6)
    chain.setConsensus(consensus === 'tower' ? 'alpenglow' : 'tower')
    await run(chain, 5)
    before = readVisibleState(chain)
    finalized = chain.slot('finalized')
    genesis = chain.alpenglowGenesis()
    assert.equal(chain.account(alice, 'finalized')?.lamports === undefined, false)
  }
})

describe('a damaged state folder', () => {
  /** A folder as a killed process leaves it. */
  async function makeImage(path: string) {
    await using host = await open(join(path, 'run'))
    await run(host.chain, 6)
    const image = join(path, 'image')
    cpSync(join(path, 'run'), image, { recursive: true })
    return { before: readVisibleState(host.chain), image }
  }
  const blocksFile = (dir: string) => join(dir, 'ledger', readdirSync(join(dir, 'ledger')).at(-1) as string)

  test('a partial block at the end is cut off', async () => {
    using folder = makeTestFolder()
    const { before, image } = await makeImage(folder.path)
    truncateSync(blocksFile(image), statSync(blocksFile(image)).size - 5)
    await using second = await open(image)
    assert.equal(second.chain.slot('processed'), before.slot - 1)
    await run(second.chain, 3)
    assert.equal(second.chain.slot('processed'), before.slot + 2)
  })

  test('garbage at the end is cut off', async () => {
    using folder = makeTestFolder()
    const { before, image } = await makeImage(folder.path)
    appendFileSync(blocksFile(image), Buffer.alloc(100, 0x5a))
    await using second = await open(image)
    assert.deepEqual(readVisibleState(second.chain), before)
  })

  test('an unreadable snapshot stops the start and no new chain replaces it', async () => {
    using folder = makeTestFolder()
    const { image } = await makeImage(folder.path)
    writeFileSync(join(image, 'accounts.snapshot'), 'broken')
    await assert.rejects(open(image), { code: 'store-corrupt' })
    rmSync(join(image, 'accounts.snapshot'))
    await assert.rejects(open(image), { code: 'store-corrupt' })
  })
})

test('key files are readable only by their owner and are reused', async () => {
  using folder = makeTestFolder()
  {
    await using first = await open(folder.path)
    assert.equal(first.chain.faucet.length > 30, true)
  }
  const names = readdirSync(join(folder.path, 'keys'))
  assert.deepEqual(names, ['faucet.json', 'identity.json', 'stake.json', 'vote.json'])
  for (const name of names) assert.equal(statSync(join(folder.path, 'keys', name)).mode & 0o777, 0o600)
})

test('history is bounded in memory and on disk', async () => {
  using folder = makeTestFolder()
  await using host = await open(folder.path, { limits: { ledgerBlocksMax: 512 } })
  const { chain, clock } = host
  clock.advance(400 * 1600)
  await chain.produceBlock()
  assert.equal(chain.slot('processed'), 1601)
  assert.equal(chain.firstAvailableSlot(), 1601 - 511)
  assert.equal(chain.block(chain.firstAvailableSlot() - 1), undefined)
})

test('a continued chain adds missing fixtures and keeps its existing accounts', async () => {
  using folder = makeTestFolder()
  const accounts = folder.file('accounts')
  mkdirSync(accounts)
  const put = (name: string, pubkey: string, lamports: number) =>
    writeFileSync(
      join(accounts, name),
      JSON.stringify({
        pubkey,
        account: { lamports, data: ['', 'base64'], owner: '11111111111111111111111111111111' },
      }),
    )
  const [first, second] = [3, 4].map((byte) => encodeBase58(new Uint8Array(32).fill(byte))) as [string, string]
  put('first.json', first, 1_000_000)
  {
    await using host = await open(folder.file('state'), { accountsDir: accounts })
    assert.equal(host.chain.account(first, 'processed')?.lamports, 1_000_000n)
    assert((await host.chain.airdrop(first, SOL)).ok)
    await host.chain.produceBlock()
  }
  put('second.json', second, 2_000_000)
  await using host = await open(folder.file('state'), { accountsDir: accounts })
  await host.chain.produceBlock()
  assert.equal(host.chain.account(first, 'processed')?.lamports, 1_000_000n + SOL)
  assert.equal(host.chain.account(second, 'processed')?.lamports, 2_000_000n)
})

test('blocks that cannot be written are kept in memory and written later', () => {
  using folder = makeTestFolder()
  const head = (slot: number): Head => ({
    slot,
    height: slot,
    blockhash: alice,
    bankHash: new Uint8Array(32),
    time: 0,
    epochStartTimestamp: 0,
    transactionCount: 0,
    writeVersion: 0n,
  })
  const state = { accounts: new AccountStore() } as unknown as ChainState
  const messages: string[] = []
  const log = {
    ...silentLogger,
    error: (_: unknown, message: string) => messages.push(message),
    info: (message: string) => messages.push(message),
  } as unknown as Logger
  const store = new ChainStore(folder.path, { log })
  const packed = { core: new Uint8Array(9 * 1024 * 1024), writes: new Uint8Array(1) }
  store.append(packed, state, head(1))
  // The current file is full, and the next one cannot be created.
  renameSync(folder.file('ledger'), folder.file('elsewhere'))
  store.append(packed, state, head(2))
  store.append(packed, state, head(3))
  renameSync(folder.file('elsewhere'), folder.file('ledger'))
  store.append(packed, state, head(4))
  assert.deepEqual(messages, ['blocks cannot be written; they are kept in memory', 'blocks are written again'])
  using file = new LedgerFile(folder.file('ledger'))
  assert.deepEqual(
    [...file.readAll()].map(({ slot }) => slot),
    [1, 2, 3, 4],
  )
})
