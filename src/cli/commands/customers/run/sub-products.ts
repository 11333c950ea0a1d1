import { parseProducts } from '../../../../access/provisioning/subscriptions.ts'
import { PRODUCTS, type ProductKey } from '../../../../contract/products.ts'
import { ServiceError } from '../../../../core/error.ts'
import type { ChangeFlags, CliContext, ConfirmFlags } from '../../../define.ts'
import { findOffered } from '../../../operations/catalogue.ts'
import { openOperations } from '../../../operations/open.ts'
import { subscriptions } from '../../../operations/subscriptions.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { write } from '../../../output/print.ts'
import { reportSub } from './report-sub.ts'

export async function addProductCommand(
  this: CliContext,
  flags: ChangeFlags,
  idOrName: string,
  productName: string,
): Promise<void> {
  const product = parseProduct(productName, await findOffered(this, flags))
  await using on = await openOperations(subscriptions, this, flags)
  const { subscription, hasToken } = await on.addProduct({ subscription: idOrName, product })
  const { name, products } = subscription
  const token = hasToken ? '; its token stays the same' : ''
  reportSub(this, flags, subscription, `now includes ${products.join(', ')}${token}`)
  if (flags.json === true) return
  const next = product === 'shreds-raw' || hasToken ? [] : [`sluice token issue ${name}`]
  next.push(...(NEXT_STEPS[product]?.(name) ?? []))
  for (const step of next) write(this, `next: ${step}`)
}

export async function removeProductCommand(
  this: CliContext,
  flags: ConfirmFlags,
  idOrName: string,
  productName: string,
): Promise<void> {
  const product = parseProduct(productName, await findOffered(this, flags))
  await using on = await openOperations(subscriptions, this, flags)
  const found = await on.find(idOrName)
  if (found.products.includes(product) && found.products.length > 1) {
    const what = `this refuses ${PRODUCTS[product].title} to ${found.name}`
    await confirmCut(this, flags, `${what} and ends what it has open there within 5 s`)
  }
  const subscription = await on.removeProduct({ subscription: found.id, product })
  reportSub(this, flags, subscription, `no longer includes ${product}; it includes ${subscription.products.join(', ')}`)
}

/** What the customer needs for a product besides the token. */
const NEXT_STEPS: { readonly [Product in ProductKey]?: (name: string) => string[] } = {
  indexer: (name) => [`sluice indexer grant ${name}`],
  'shreds-raw': (name) => [`sluice shred set-destination ${name} IP:PORT`],
  'dedicated-node': (name) => [`sluice node assign NODE ${name}`],
}

function parseProduct(text: string, offered: ReadonlySet<ProductKey>): ProductKey {
  const [product, ...more] = parseProducts(text, offered)
  if (product !== undefined && more.length === 0) return product
  throw new ServiceError('usage', 'one product at a time', { fix: 'Run the command once for each product.' })
}
