import assert from 'node:assert/strict'
import { test } from 'node:test'
import { revokeTokens } from '../../src/access/provisioning/tokens.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startGateway } from '../support/gateway/start.ts'
import { startChromium } from '../support/machine/chromium.ts'
import { NEEDS_CHROMIUM, startPageRig, statOf, untilState, WEBGL } from './rig.ts'

const NEEDED = { timeout: 120_000, ...NEEDS_CHROMIUM }

test(
  'the page asks for a token where the service requires one, stores it in the tab, and shows the stream',
  NEEDED,
  async () => {
    await using gateway = await startGateway([])
    const { access } = gateway
    const { token } = await gateway.subscribe({ name: 'viewer', products: ['indexer'] })
    await until('the store has reached the process', () => access.authenticate({ token }, 'execution', Date.now()).ok)
    await using rig = await startPageRig({ access })
    await using browser = await startChromium(WEBGL)
    const { page } = await browser.open(rig.url)
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    page.on('websocket', (socket) => asked.push(socket.url()))
    await untilState(page, 'locked')

    await page.fill('#token', `${token.slice(0, -1)}x`)
    await page.press('#token', 'Enter')
    await page.locator('.token-status', { hasText: 'refused this token' }).waitFor()
    assert.equal(await page.inputValue('#token'), '')

    await page.fill('#token', token)
    await page.press('#token', 'Enter')
    await untilState(page, 'live')
    const seq = await statOf(page, 'seq')
    await until('the strip moves', async () => (await statOf(page, 'seq')) !== seq, 20_000)
    assert.equal(await page.locator('#token').count(), 0)

    // The tab keeps it across a reload; another tab does not have it.
    await page.reload()
    await untilState(page, 'live')
    assert.equal(await page.evaluate('localStorage.length + document.cookie.length'), 0)
    const other = await browser.open(rig.url)
    await untilState(other.page, 'locked')
    assert(asked.some((url) => url.includes('ticket=')))
    assert.deepEqual(
      asked.filter((url) => url.includes(token)),
      [],
    )

    await revokeTokens(gateway.on, { subscription: 'viewer' })
    await untilState(page, 'locked')
    assert.equal(await page.evaluate('sessionStorage.length'), 0)
  },
)
