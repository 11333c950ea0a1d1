import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { NODE_BLOCKHASH } from '../../test/support/sender/node.ts'
import { startSenderNode } from '../../test/support/sender/process.ts'
import { MIN_TIP, startTestSender, TIP_ACCOUNTS, tipped, walletOf } from '../../test/support/sender/start.ts'
import type { AppendFile } from '../platform/files/append.ts'
import { makeTestFolder } from '../platform/files/test-folder.ts'
import { systemClock } from '../platform/process/clock.ts'
import { secureRandom } from '../platform/process/random.ts'
import { until } from '../platform/process/test-wait.ts'
import { silentLogger } from '../platform/telemetry/logger.ts'
import { encodeBase58 } from '../solana/crypto/base58.ts'
import type { SignatureVerifier } from './accept/signature-verifier.ts'
import { createVerifySignatures } from './accept/verify-signatures.ts'
import { parseSenderOptions } from './options.ts'
import { openLedgerFile } from './tips/ledger-file.ts'
import { readTips } from './tips/report.ts'
import { type WarmUpDeps, warmUp } from './warm-up.ts'

const ALL = 4 * 256
const DAY_MS = 86_400_000
const OPTIONS = parseSenderOptions({
  tipAccounts: TIP_ACCOUNTS,
  limits: { perAddressPerSecond: 1, perAddressBurst: 1, accountLocksMax: 1, checkingMax: 1 },
})

/** So much passes with each reading, so that neither a slow machine nor a fast one changes how much is run. */
function steppingClock(stepMs: number): WarmUpDeps['clock'] {
  let ms = 0
  return { ...systemClock, monotonicMs: () => (ms += stepMs) }
}

/** Checks every signature at once, and collects the accounts of the transactions. */
function createTestVerifier() {
  const verifySignatures = createVerifySignatures()
  const accounts = new Set<string>()
  const verifier: SignatureVerifier = {
    verify(_wire, transaction) {
      for (const key of transaction.staticKeys) accounts.add(encodeBase58(key))
      return verifySignatures(transaction) ? 'good' : 'bad'
    },
    delayMs: 0,
    threads: 1,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
  return { verifier, accounts }
}

function depsOf(given: Partial<WarmUpDeps>): WarmUpDeps {
  return {
    clock: steppingClock(0.001),
    random: secureRandom,
    log: silentLogger,
    version: 'test',
    verifier: createTestVerifier().verifier,
    ...given,
  }
}

test('the transactions of a warm-up are accepted, also with low limits, and pay no tip account of the operator', async () => {
  const { verifier, accounts } = createTestVerifier()
  let underWayMost = 0
  let underWay = 0
  // As the real one does, it responds later.
  const slow: SignatureVerifier = {
    ...verifier,
    verify(wire, transaction, done) {
      underWay += 1
      underWayMost = Math.max(underWayMost, underWay)
      const verdict = verifier.verify(wire, transaction, done)
      assert.ok(verdict === 'good' || verdict === 'bad')
      setImmediate(() => {
        underWay -= 1
        done(verdict)
      })
      return 'pending'
    },
  }
  assert.equal(await warmUp(OPTIONS, depsOf({ verifier: slow })), ALL)
  assert.equal(underWayMost, OPTIONS.limits.checkingMax)
  const paid = TIP_ACCOUNTS.filter((account) => accounts.has(account))
  assert.deepEqual(paid, [])
})

test('a warm-up ends when its time is over', async () => {
  const accepted = await warmUp(OPTIONS, depsOf({ clock: steppingClock(1) }))
  assert.ok(accepted < ALL / 2, `${accepted} accepted`)
})

test('a warm-up leaves no check behind when its time is over', async () => {
  const { verifier } = createTestVerifier()
  let pending = 0
  const slow: SignatureVerifier = {
    ...verifier,
    verify(wire, transaction, done) {
      pending += 1
      const verdict = verifier.verify(wire, transaction, done)
      assert.ok(verdict === 'good' || verdict === 'bad')
      setTimeout(() => {
        pending -= 1
        done(verdict)
      }, 100)
      return 'pending'
    },
  }
  const options = { ...OPTIONS, limits: { ...OPTIONS.limits, checkingMax: 16 } }
  await warmUp(options, depsOf({ verifier: slow, clock: steppingClock(1) }))
  assert.equal(pending, 0)
})

test('a warm-up that fails is logged and does not stop the start', async () => {
  const warned: unknown[] = []
  const log = { ...silentLogger, warn: (fields: unknown) => warned.push(fields) }
  const error = new Error('no random bytes')
  const random = {
    ...secureRandom,
    bytes() {
      throw error
    },
  }
  assert.equal(await warmUp(OPTIONS, depsOf({ log, random })), 0)
  assert.deepEqual(warned, [{ err: error }])
})

test('after the warm-up nothing has been counted, recorded or sent', async () => {
  using folder = makeTestFolder()
  await using node = await startSenderNode()
  const written: string[] = []
  const logged: unknown[] = []
  const log = { ...silentLogger, debug: (fields: unknown) => logged.push(fields), child: () => log }
  const disk = (file: AppendFile): AppendFile => ({
    ...file,
    writeAt(at, text) {
      written.push(text)
      return file.writeAt(at, text)
    },
  })
  {
    await using sender = await startTestSender({
      folder: folder.path,
      disk,
      isWarmedUp: true,
      log,
      nodes: [{ name: 'node', rpc: node.url }],
      rpc: [{ name: 'relay', url: node.url, allowPrivate: true }],
    })
    const { registry } = sender
    // A slow machine has not passed all of them, but some.
    const warmedUp = logged.find((fields) => typeof fields === 'object' && fields !== null && 'accepted' in fields)
    assert.ok(warmedUp !== undefined && Number(warmedUp.accepted) > 0, JSON.stringify(logged))
    const counts = () => ({
      received: registry.value('sluice_sender_received_total', { result: 'accepted' }) ?? 0,
      settled: registry.value('sluice_sender_finished_total', { state: 'landed' }) ?? 0,
      receipts: registry.value('sluice_sender_receipts'),
      known: registry.value('sluice_sender_known_signatures'),
    })
    const hasAttempts = async () => /^sluice_sender_attempts_total\{.*\} [1-9]/m.test(await registry.text())
    assert.deepEqual(counts(), { received: 0, settled: 0, receipts: 0, known: 0 })
    const { accepted, pending, tipLamports } = sender.sender.stats()
    assert.deepEqual({ accepted, pending, tipLamports }, { accepted: 0, pending: 0, tipLamports: '0' })
    assert.equal(await hasAttempts(), false)
    assert.deepEqual(written, [])
    assert.deepEqual(await arrivalsAt(node.child), [])

    // The same shows one transaction.
    const wire = tipped(walletOf(0), NODE_BLOCKHASH, 'after the warm-up')
    const { result } = await sender.send(wire)
    assert.deepEqual(written.join('').match(/^accepted \w+/gm), [`accepted ${String(result)}`])
    assert.equal(counts().received, 1)
    assert.equal(counts().receipts, 1)
    const arrived: unknown[] = []
    await until('the node has it', async () => {
      arrived.push(...(await arrivalsAt(node.child)))
      return arrived.length > 0
    })
    assert.equal(arrived.length, 1)
    await until('the attempts are counted', hasAttempts)
  }
  const atMs = systemClock.nowMs()
  await using ledger = await openLedgerFile(folder.path, { clock: systemClock, random: secureRandom })
  // The night may be over meanwhile.
  const tips = await readTips(ledger, { fromMs: atMs - DAY_MS, toMs: atMs, by: 'total' })
  const sums = tips.map(({ accepted, offeredLamports }) => ({ accepted, offeredLamports }))
  assert.deepEqual(sums, [{ accepted: 1, offeredLamports: Number(MIN_TIP) }])
})

async function arrivalsAt(node: Awaited<ReturnType<typeof startSenderNode>>['child']): Promise<unknown[]> {
  node.send('?')
  const [arrivals] = (await once(node, 'message')) as [unknown[]]
  return arrivals
}
