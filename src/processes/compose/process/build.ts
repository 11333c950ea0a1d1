import type { ProductKey } from '../../../contract/products.ts'

/** Which products this version implements. */
export const BUILT: Readonly<Record<ProductKey, boolean>> = {
  bundle: true,
  indexer: true,
  'shreds-raw': true,
  sender: true,
  'dedicated-node': true,
  'shreds-decoded': false,
  execution: true,
}
