import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { BlockTransactions } from '../../src/contract/execution-history.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type Chromium, startChromium } from '../support/machine/chromium.ts'
import { NEEDS_CHROMIUM, type PageRig, startPageRig, statOf, untilState, WEBGL } from './rig.ts'

describe('search and transactions', { timeout: 240_000, ...NEEDS_CHROMIUM }, () => {
  let rig: PageRig
  let browser: Chromium
  let page: Page
  let block: BlockTransactions

  before(async () => {
    // Enough transactions in a block for two pages.
    rig = await startPageRig({ blockMs: 400, tps: 200 })
    browser = await startChromium(WEBGL)
    ;({ page } = await browser.open(rig.url))
    await page.setViewportSize({ width: 1440, height: 900 })
    await untilState(page, 'live')
    await until('a block has two pages of transactions', async () => {
      const number = Number(await statOf(page, 'block')) - 6
      const response = await fetch(`${rig.directUrl()}v1/blocks/${number}/transactions?limit=500`)
      if (!response.ok) return false
      block = (await response.json()) as BlockTransactions
      return block.txn_count > 40
    })
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await rig[Symbol.asyncDispose]()
  })

  async function search(text: string): Promise<void> {
    await page.fill('#search', text)
    await page.press('#search', 'Enter')
  }

  test('a block is found by number, consensus id, Ethereum hash and its shortened form', async () => {
    const { block_number, block_id, block_hash } = block
    for (const text of [
      String(block_number),
      block_id,
      block_hash,
      `${block_id.slice(0, 18)}…${block_id.slice(-12)}`,
    ]) {
      await search(text)
      await page.locator('.drawer h2', { hasText: `Block ${block_number}` }).waitFor()
      assert.equal(await page.inputValue('#search'), '')
      await page.locator('.drawer .close').click()
      await page.locator('.drawer').waitFor({ state: 'detached' })
    }
  })

  test('a transaction is found by its hash, and its row is shown', async () => {
    const transaction = block.transactions[30]
    assert.ok(transaction)
    await search(transaction.hash)
    const row = page.locator('.transactions [aria-current="true"]')
    await row.waitFor()
    assert.match(await row.innerText(), /^30\s/)
    assert.equal(new URL(page.url()).hash, `#block=${block.block_number}/30`)
  })

  test('the transactions of a block are listed page by page, and a hash is copied with a click', async () => {
    await browser.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.evaluate(`location.hash = 'block=${block.block_number}'`)
    const drawer = page.locator('.drawer')
    await drawer.locator('.transactions tbody tr').first().waitFor()
    await drawer.getByText(`1 to 20 of ${block.txn_count}`).waitFor()
    await drawer.getByRole('button', { name: 'next →' }).click()
    await drawer.getByText(`21 to 40 of ${block.txn_count}`).waitFor()
    const copy = drawer.locator('.copy-hash').first()
    // Speech input finds a button by the text that it shows.
    assert.equal(await copy.getAttribute('aria-label'), `Copy ${await copy.innerText()}`)
    await copy.click()
    await drawer.locator('.copy-hash', { hasText: 'copied' }).waitFor()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), block.transactions[20]?.hash)
    await drawer.getByRole('button', { name: '← before' }).click()
    await drawer.getByText(`1 to 20 of ${block.txn_count}`).waitFor()
    assert.match(await drawer.innerText(), /Proposed \d\d:\d\d:\d\d, .* ago/)
  })

  test('a contract is found by name, by a name of this browser, and by the beginning of its address', async () => {
    const [[address, name]] = [...rig.ring.labels] as [[string, string]]
    for (const text of [name, name.toUpperCase(), address, address.slice(0, 12)]) {
      await search(text)
      await page.locator('.drawer .whole', { hasText: address }).waitFor()
      await page.evaluate(`location.hash = ''`)
      await page.locator('.drawer').waitFor({ state: 'detached' })
    }
    const other = [...rig.ring.labels.keys()][1] as string
    await page.evaluate(`location.hash = 'contract=${other}'`)
    await page.fill('input[name="label"]', 'Treasury of mine')
    await page.press('input[name="label"]', 'Enter')
    await search('treasury')
    await page.locator('.drawer .whole', { hasText: other }).waitFor()
  })

  test('several results are listed, and one is selected by keyboard', async () => {
    await page.evaluate(`location.hash = ''`)
    await search('token')
    await page.locator('#search-status', { hasText: /\d+ found/ }).waitFor()
    assert.ok((await page.locator('.found li').count()) > 3)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.locator('.drawer').waitFor()
    assert.equal(await page.locator('.found li').count(), 0)
    await search('token')
    await page.locator('.found li').first().waitFor()
    await page.keyboard.press('Escape')
    await page.locator('.found li').first().waitFor({ state: 'detached' })
  })

  test('nothing found: names what was searched for and the blocks that are held', async () => {
    for (const text of ['123456', 'no such name', `0x${'12'.repeat(32)}`]) {
      await search(text)
      await page.locator('.refused', { hasText: /Nothing found for “.*”\. Held are blocks \d+ to \d+/ }).waitFor()
      assert.equal(await page.getAttribute('#search', 'aria-invalid'), 'true')
    }
  })
})
