import type { BlockAccesses, GroupedAccesses } from './block-accesses.ts'

/** Who touched what in a block, each pair counted once. */
export type BlockTouches = {
  /** For each slot, transactions that touched it. */
  slotTxns: Uint32Array
  /** For each slot, whether some transaction changed it. */
  slotHasWriter: Uint8Array
  /** For each contract, transactions that touched its storage. */
  contractTxns: Uint32Array
  /** The contracts of transaction t are `contracts[starts[t]]` to `contracts[starts[t + 1] - 1]`. */
  contractsOfTxn: { starts: Uint32Array; contracts: Uint32Array }
}

export function countTouches(block: BlockAccesses, { starts, slots }: GroupedAccesses): BlockTouches {
  const slotTxns = new Uint32Array(block.slots.size)
  const slotHasWriter = new Uint8Array(block.slots.size)
  const contractTxns = new Uint32Array(block.contracts.size)
  // Number of the last transaction seen + 1, so that a second access of the same one does not count.
  const slotSeen = new Uint32Array(block.slots.size)
  const contractSeen = new Uint32Array(block.contracts.size)
  const contractStarts = new Uint32Array(block.txns + 1)
  const contracts = new Uint32Array(slots.length)
  let touched = 0
  for (let txn = 0; txn < block.txns; txn++) {
    const end = starts[txn + 1] as number
    for (let at = starts[txn] as number; at < end; at++) {
      const slot = (slots[at] as number) >>> 1
      if (((slots[at] as number) & 1) === 1) slotHasWriter[slot] = 1
      if (slotSeen[slot] === txn + 1) continue
      slotSeen[slot] = txn + 1
      slotTxns[slot] = (slotTxns[slot] as number) + 1
      const contract = block.contractOf[slot] as number
      if (contractSeen[contract] === txn + 1) continue
      contractSeen[contract] = txn + 1
      contractTxns[contract] = (contractTxns[contract] as number) + 1
      contracts[touched++] = contract
    }
    contractStarts[txn + 1] = touched
  }
  return { slotTxns, slotHasWriter, contractTxns, contractsOfTxn: { starts: contractStarts, contracts } }
}
