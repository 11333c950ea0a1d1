import assert from 'node:assert/strict'
import { test } from 'node:test'
import internal from 'litesvm/dist/internal.js'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import {
  CLOCK_SYSVAR,
  EPOCH_SCHEDULE_SYSVAR,
  SLOT_HASHES_SYSVAR,
  SLOT_HISTORY_SYSVAR,
  SYSVAR_OWNER,
} from '../chain/addresses.ts'
import {
  encodeClock,
  encodeEpochSchedule,
  encodeRecentBlockhashes,
  encodeSlotHashes,
  encodeSlotHistory,
  minimumBalance,
  slotHistoryAccount,
  writeSlotHistory,
} from './sysvars.ts'

/** The runtime decodes the bytes and serves as the oracle for the encoders. */
const svm = new internal.LiteSvm()
function put(address: string, data: Uint8Array) {
  svm.setAccount(decodeBase58(address), new internal.Account(1n, data, decodeBase58(SYSVAR_OWNER), false, 0n))
}

test('the engine decodes the clock that was encoded', () => {
  put(CLOCK_SYSVAR, encodeClock({ slot: 9, epoch: 2, epochStartTimestamp: 100, unixTimestamp: 200 }))
  const { slot, epoch, epochStartTimestamp, leaderScheduleEpoch, unixTimestamp } = svm.getClock()
  assert.deepEqual([slot, epoch, epochStartTimestamp, leaderScheduleEpoch, unixTimestamp], [9n, 2n, 100n, 3n, 200n])
})

test('the engine decodes the epoch schedule: no warm-up, leader schedule one epoch ahead', () => {
  put(EPOCH_SCHEDULE_SYSVAR, encodeEpochSchedule(432_000))
  const schedule = svm.getEpochSchedule()
  assert.deepEqual(
    [schedule.slotsPerEpoch, schedule.leaderScheduleSlotOffset, schedule.warmup, schedule.firstNormalEpoch],
    [432_000n, 432_000n, false, 0n],
  )
})

test('slot hashes: newest first, at most 512', () => {
  const hashes = Array.from({ length: 600 }, (_, i) => ({ slot: 1000 - i, hash: new Uint8Array(32).fill(i % 251) }))
  put(SLOT_HASHES_SYSVAR, encodeSlotHashes(hashes))
  const read = svm.getSlotHashes()
  assert.equal(read.length, 512)
  assert.deepEqual([read[1]?.slot, read[1]?.hash], [999n, encodeBase58(new Uint8Array(32).fill(1))])
})

test('slot history: all slots up to the newest, within the last 2^20', () => {
  for (const newest of [0, 1, 7, 8, 1000, 2 ** 20 - 1, 2 ** 20, 2 ** 20 + 13, 3 * 2 ** 20 + 5]) {
    put(SLOT_HISTORY_SYSVAR, encodeSlotHistory(newest))
    const history = svm.getSlotHistory()
    assert.equal(history.nextSlot, BigInt(newest + 1))
    assert.equal(history.newest(), BigInt(newest))
    assert.equal(history.check(BigInt(newest)), 2)
    assert.equal(history.check(BigInt(Math.max(0, newest - 2 ** 20 + 1))), 2)
    assert.equal(history.check(BigInt(newest + 1)), 0)
  }
  assert.deepEqual(writeSlotHistory(encodeSlotHistory(500), 777), encodeSlotHistory(777))
  assert.deepEqual(slotHistoryAccount(777).data, encodeSlotHistory(777))
})

test('recent blockhashes: 150 at most, each with its fee rate', () => {
  const data = encodeRecentBlockhashes(Array.from({ length: 200 }, (_, i) => new Uint8Array(32).fill(i)))
  const view = new DataView(data.buffer)
  assert.equal(view.getBigUint64(0, true), 150n)
  assert.equal(data.length, 8 + 150 * 40)
  assert.equal(data[8 + 40], 1)
  assert.equal(view.getBigUint64(8 + 32, true), 5000n)
})

test('the rent-exempt minimum equals that of the runtime', () => {
  for (const bytes of [0, 80, 165, 10_000])
    assert.equal(minimumBalance(bytes), svm.minimumBalanceForRentExemption(BigInt(bytes)))
})
