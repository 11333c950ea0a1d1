import type { FoldLine } from '../../../../execution/tools/fold.ts'

/** A line of the fold as text. */
export function describeLine(line: FoldLine): string {
  if ('Gap' in line) return `gap: events ${line.Gap.from_seqno} to ${line.Gap.to_seqno} are missing (${line.Gap.cause})`
  if ('Lifecycle' in line) {
    const { block_number, block_hash, current_stage, stage_timings_ms, gas_used } = line.Lifecycle
    const times = Object.entries(stage_timings_ms).map(([stage, ms]) => `${stage} ${fixed(ms ?? 0, 1)} ms`)
    return `lifecycle ${block_number} ${shortHash(block_hash)}: ${current_stage}, gas ${gas_used ?? '-'} (${times.join(', ')})`
  }
  if ('TopAccesses' in line) {
    const { account, storage } = line.TopAccesses
    const { accuracy } = line
    return [
      `top accounts of ${accuracy.account.seen} accesses${bound(accuracy.account.error_max)}:`,
      ...account.map(({ key, count }) => `  ${count}  ${key}`),
      `top storage slots of ${accuracy.storage.seen} accesses${bound(accuracy.storage.error_max)}:`,
      ...storage.map(({ key, count }) => `  ${count}  ${key[0]} ${key[1]}`),
    ].join('\n')
  }
  const { block_number, block_hash, TPS, ContentionData: data, conflicts, reason } = line
  const head = `block ${block_number} ${shortHash(block_hash)}: TPS ${TPS ?? '-'}`
  if (data === null) return `${head}, no contention figures (${reason})`
  return (
    `${head}, ${data.total_txn_count} transactions in ${fixed(data.block_wall_time_ns / 1e6, 1)} ms, ` +
    `efficiency ${fixed(data.parallel_efficiency_pct, 1)} %, ` +
    `${data.contended_slot_count} of ${data.total_unique_slots} slots contended ` +
    `(${conflicts?.contended_with_writer ?? 0} with a writer)`
  )
}

const bound = (errorMax: number): string => (errorMax === 0 ? ', exact' : `, at most ${errorMax} too high`)

export function shortHash(hash: string): string {
  return hash.length <= 14 ? hash : `${hash.slice(0, 8)}…${hash.slice(-4)}`
}

export function fixed(value: number, digits: number): string {
  return value.toFixed(digits)
}
