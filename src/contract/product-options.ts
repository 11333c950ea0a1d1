import { z } from 'zod'
import { section } from './option-fields.ts'
import { PRODUCT_KEYS, PRODUCTS, type ProductKey } from './products.ts'

/** What the operator decides about products. */
export const productsOptions = z.strictObject({
  'shreds-decoded': section('ShredStream Decoded: transactions from shreds, before they are executed.', {
    status: z
      .enum(['coming-soon', 'preview'])
      .default('coming-soon')
      .describe(
        'coming-soon: listed, and cannot be provisioned. preview: offered; SubscribeDeshred and SubscribeEntries on the gRPC port are served from the shreds of the relay.',
      ),
  }),
})

export type ProductsOptions = z.output<typeof productsOptions>

/** Products that can be provisioned with these options. */
export function offeredProducts(options: ProductsOptions): ReadonlySet<ProductKey> {
  return new Set(PRODUCT_KEYS.filter((key) => PRODUCTS[key].available || isPreview(options, key)))
}

function isPreview(options: ProductsOptions, key: ProductKey): boolean {
  return key === 'shreds-decoded' && options[key].status === 'preview'
}
