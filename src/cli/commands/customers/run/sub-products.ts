import { lookUp } from '../../../../access/provisioning/context.ts'
import { addProduct, parseProducts, removeProduct } from '../../../../access/provisioning/subscriptions.ts'
import { offeredProducts } from '../../../../contract/product-options.ts'
import { PRODUCTS, type ProductKey } from '../../../../contract/products.ts'
import { ServiceError } from '../../../../core/error.ts'
import type { Settings } from '../../../../processes/compose/config/settings.ts'
import type { ChangeFlags, CliContext, CutFlags } from '../../../define.ts'
import { findSettings } from '../../../find-settings.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { write } from '../../../output/print.ts'
import { openSession } from '../../../session.ts'
import { reportSub } from './report-sub.ts'

export async function addProductCommand(
  this: CliContext,
  flags: ChangeFlags,
  idOrName: string,
  productName: string,
): Promise<void> {
  const product = parseProduct(productName, await findSettings(this, flags))
  await using session = await openSession(this, flags)
  const subscription = await addProduct(session.provisioning(flags), { subscription: idOrName, product })
  const tokens = (await session.store.find('tokens', { subscriptionId: subscription.id })).filter(
    ({ state }) => state !== 'revoked',
  )
  const { name, products } = subscription
  const token = tokens.length === 0 ? '' : '; its token stays the same'
  reportSub(this, flags, subscription, `now includes ${products.join(', ')}${token}`)
  if (flags.json === true) return
  const next = product === 'shreds-raw' || tokens.length > 0 ? [] : [`sluice token issue ${name}`]
  next.push(...(NEXT_STEPS[product]?.(name) ?? []))
  for (const step of next) write(this, `next: ${step}`)
}

export async function removeProductCommand(
  this: CliContext,
  flags: CutFlags,
  idOrName: string,
  productName: string,
): Promise<void> {
  const product = parseProduct(productName, await findSettings(this, flags))
  await using session = await openSession(this, flags)
  const found = await lookUp(session.store, 'subscriptions', idOrName)
  if (found.products.includes(product) && found.products.length > 1) {
    const what = `this refuses ${PRODUCTS[product].title} to ${found.name}`
    await confirmCut(this, flags, `${what} and ends what it has open there within 5 s`)
  }
  const input = { subscription: found.id, product }
  const subscription = await removeProduct(session.provisioning(flags), input)
  reportSub(this, flags, subscription, `no longer includes ${product}; it includes ${subscription.products.join(', ')}`)
}

/** What the customer needs for a product besides the token. */
const NEXT_STEPS: { readonly [Product in ProductKey]?: (name: string) => string[] } = {
  indexer: (name) => [`sluice indexer grant ${name}`],
  'shreds-raw': (name) => [`sluice shred set-destination ${name} IP:PORT`],
  'dedicated-node': (name) => [`sluice node assign NODE ${name}`],
}

function parseProduct(text: string, { config }: Settings): ProductKey {
  const [product, ...more] = parseProducts(text, offeredProducts(config.products))
  if (product !== undefined && more.length === 0) return product
  throw new ServiceError('usage', 'one product at a time', { fix: 'Run the command once for each product.' })
}
