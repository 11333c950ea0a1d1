/**
 * Amounts and sums of the ledger stop at the largest number that is exact in JavaScript, about 9 million SOL: the store cannot read a larger one back,
 * and a sum that overflows in SQLite is no integer any more.
 */
export const LEDGER_LAMPORTS_MAX = Number.MAX_SAFE_INTEGER

export function saturatedLamports(lamports: bigint | number): number {
  return lamports > LEDGER_LAMPORTS_MAX ? LEDGER_LAMPORTS_MAX : Number(lamports)
}
