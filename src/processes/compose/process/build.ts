import type { ProductKey } from '../../../contract/products.ts'

/** Which services this build can run. The one place that knows; a service that lands turns its line to true. */
export const BUILT: Readonly<Record<ProductKey, boolean>> = {
  bundle: true,
  indexer: true,
  'shreds-raw': true,
  sender: true,
  'dedicated-node': true,
  'shreds-decoded': false,
  execution: true,
}
