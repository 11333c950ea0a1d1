import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { ProductKey } from '../../../contract/products.ts'
import { type CardInput, handoverCard } from './handover-card.ts'

const PAGES = join(import.meta.dirname, '../../../../docs/customers')

/** The card of a subscription with one product, as `sub create` makes it: with shreds alone it has no token. */
function cardOf(product: ProductKey): string {
  const endpoints = {
    ...{ rpc: 'https://rpc.test', ws: 'wss://ws.test', grpc: 'https://grpc.test', indexer: 'https://sql.test' },
    ...{ sender: 'https://send.test', execution: 'https://stream.test', missing: [] },
  }
  const input = {
    subscription: { name: 'acme', plan: 'build', products: [product], validUntil: null },
    customer: { name: 'acme' },
    token: product === 'shreds-raw' ? undefined : { secret: 'slc_x' },
    credential: product === 'indexer' ? { record: { username: 'u_x' }, password: 'p' } : undefined,
    destination: undefined,
    limits: { unitsPerMonth: null, methods: {} },
    endpoints,
  }
  return handoverCard(input as unknown as CardInput)
}

const exportedBy = (card: string) => new Set([...card.matchAll(/^ +export (\w+)=\S+$/gm)].map(([, name]) => name))

function usedBy(page: string): Set<string> {
  const text = readFileSync(join(PAGES, page), 'utf8')
  const fences = [...text.matchAll(/^```(?:sh|js)(?: run)?\n(.*?)^```/gms)].map(([, lines = '']) => lines)
  const used = fences.flatMap((lines) => [...lines.matchAll(/(?:\$|process\.env\.)(SLUICE_\w+)/g)])
  return new Set(used.map(([, name = '']) => name))
}

const PAGE_OF: readonly (readonly [ProductKey, string])[] = [
  ['bundle', 'bundle.md'],
  ['dedicated-node', 'bundle.md'],
  ['indexer', 'indexer.md'],
  ['shreds-raw', 'shreds.md'],
  ['shreds-decoded', 'decoded.md'],
]

for (const [product, page] of PAGE_OF) {
  test(`the card of ${product} alone exports every variable of ${page} and of the page about usage`, () => {
    const exported = exportedBy(cardOf(product))
    const used = [...usedBy(page), ...usedBy('README.md')]
    assert.ok(used.length > 0)
    const missing = used.filter((name) => !exported.has(name))
    assert.deepEqual(new Set(missing), new Set(product === 'shreds-raw' ? ['SLUICE_TOKEN'] : []))
  })
}

test('the card of the bundle opens a WebSocket, calls gRPC and names how a new token is made', () => {
  const card = cardOf('bundle')
  assert.match(card, /^ +npx wscat -H 'x-token: slc_x' .* -c wss:\/\/ws\.test$/m)
  assert.match(card, /^ +grpcurl -H 'x-token: slc_x' grpc\.test:443 geyser\.Geyser\/GetVersion$/m)
  assert.match(card, /sluice token rotate acme$/m)
  assert.doesNotMatch(cardOf('indexer'), /wscat|grpcurl/)
})

test('every card with a token has the line that shows plan and limits', () => {
  for (const [product] of PAGE_OF)
    assert.equal(cardOf(product).includes('https://rpc.test/v1/whoami'), product !== 'shreds-raw', product)
})
