import { createSeededRandom, type Random, randomInt } from '../src/core/random.ts'
import type { ExecRecorder } from '../src/evm/event/recorder.ts'
import { EVENT } from '../src/evm/event/type.ts'
import { toHex } from '../src/evm/hex.ts'

/** Events per transaction of `createBlockSource`. */
export const EVENTS_PER_TXN = 25

/** Records blocks of token transfers and swaps: few contracts are hot, most storage slots belong to one account. */
export function createBlockSource(recorder: ExecRecorder, options: { txnsPerBlock: number; nowNs: () => bigint }) {
  const random = createSeededRandom(5)
  const contracts = Array.from({ length: 2000 }, () => random.bytes(20))
  const accounts = Array.from({ length: 50_000 }, () => random.bytes(20))
  const now = () => ({ timeNs: options.nowNs() })

  function writeTxn(txnIndex: number): void {
    const add = (type: number, bytes: number, fill?: (payload: Uint8Array, view: DataView) => void): void => {
      const payload = new Uint8Array(bytes)
      fill?.(payload, new DataView(payload.buffer))
      recorder.addEncoded(type, payload, { ...now(), txnIndex })
    }
    add(EVENT.TXN_PERF_EVM_ENTER, 0)
    add(EVENT.TXN_HEADER_START, 352 + 68, (_, view) => view.setUint32(336, 68, true))
    add(EVENT.TXN_HEADER_END, 0)
    add(EVENT.TXN_EVM_OUTPUT, 24, (_, view) => {
      view.setUint32(4, 2, true)
      view.setUint32(16, 4, true)
    })
    for (let log = 0; log < 2; log++) add(EVENT.TXN_LOG, 32 + 96 + 32)
    for (let frame = 0; frame < 4; frame++) add(EVENT.TXN_CALL_FRAME, 128 + 68 + 32)
    add(EVENT.ACCOUNT_ACCESS_LIST_HEADER, 8, (_, view) => view.setUint32(0, 4, true))
    for (let access = 0; access < 4; access++) {
      const address = access < 2 ? pick(contracts, random) : pick(accounts, random)
      const slots = access < 2 ? 4 : 0
      add(EVENT.ACCOUNT_ACCESS, 152, (payload, view) => {
        payload.set(address, 4)
        view.setUint32(144, slots, true)
      })
      for (let slot = 0; slot < slots; slot++) {
        add(EVENT.STORAGE_ACCESS, 124, (payload) => {
          payload.set(address, 0)
          payload[25] = slot & 1
          if (slot < 2) payload[58] = slot
          else payload.set(pick(accounts, random), 39)
        })
      }
    }
    add(EVENT.TXN_END, 0)
    add(EVENT.TXN_PERF_EVM_EXIT, 0)
  }

  return {
    /** One block with its votes, not flushed; stops after each transaction. */
    *write(block: number): Generator<void> {
      const id = new Uint8Array(32)
      new DataView(id.buffer).setBigUint64(24, BigInt(block))
      const hex = toHex(id)
      const txn_count = BigInt(options.txnsPerBlock)
      recorder.add('BLOCK_START', { id: hex, block_number: BigInt(block), txn_count }, now())
      for (let txnIndex = 0; txnIndex < options.txnsPerBlock; txnIndex++) {
        writeTxn(txnIndex)
        yield
      }
      recorder.add('BLOCK_END', { gas_used: 1n }, now())
      recorder.add('BLOCK_FINALIZED', { id: hex, block_number: BigInt(block) }, now())
      recorder.add('BLOCK_VERIFIED', { block_number: BigInt(block) }, now())
    },
  }
}

/** Picks the k-th item with a probability of about 1 / k. */
function pick<Item>(items: readonly Item[], random: Random): Item {
  const position = Math.floor(items.length ** random.float()) - 1
  return items[Math.max(0, Math.min(items.length - 1, position + randomInt(random, 2)))] as Item
}
