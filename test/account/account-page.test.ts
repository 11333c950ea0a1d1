import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { WebSocket } from 'ws'
import { until } from '../../src/platform/process/test-wait.ts'
import { type ConsoleProcess, startConsoleProcess } from '../console/rig.ts'
import { NEEDS_CHROMIUM } from '../page/rig.ts'
import { startChromium } from '../support/machine/chromium.ts'

const THEMES = ['light', 'dark'] as const
const WIDTHS = [390, 768, 1440]

describe('the account page of a real serve, in Chromium', { ...NEEDS_CHROMIUM, timeout: 400_000 }, () => {
  let served: ConsoleProcess
  let url: string
  before(async () => {
    served = await startConsoleProcess({ isFilled: true })
    url = `http://${await served.running.address('rpc')}/account`
  })
  after(() => served[Symbol.asyncDispose]())

  const tokenOf = (name: string) => served.tokens.get(name) ?? ''
  async function signIn(page: Page, name: string): Promise<void> {
    await page.fill('#token', tokenOf(name))
    await page.click('button[type=submit]')
    await page.locator('h1', { hasText: name }).waitFor()
    await loaded(page)
  }
  async function connect(name: string): Promise<WebSocket> {
    const headers = { 'x-token': tokenOf(name) }
    const socket = new WebSocket(`ws://${await served.running.address('ws')}`, { headers })
    await once(socket, 'open')
    socket.send('{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}')
    await once(socket, 'message')
    return socket
  }

  test('a wrong token is refused in words; a right one shows usage, limits and lines to paste; nothing is kept', async () => {
    await using browser = await startChromium()
    const { page, errors } = await browser.open(url)
    await page.fill('#token', 'slc_wrong')
    await page.keyboard.press('Enter')
    const alert = page.locator('[role=alert]')
    await alert.waitFor()
    assert.match(await alert.innerText(), /token/)
    assert.equal(await page.inputValue('#token'), '')
    errors.length = 0

    await signIn(page, 'acme-prod')
    await page.locator('[data-table=method] tr', { hasText: 'getAccountInfo' }).waitFor()
    await page.locator('[data-table=interface] tr', { hasText: 'WebSocket' }).waitFor()
    assert.match(await page.locator('.panel-usage').innerText(), /the last second may be missing/)
    await page.locator('.panel-limits tr', { hasText: 'WebSocket connections' }).waitFor()
    await page.locator('.panel-shreds', { hasText: '127.0.0.1:20000' }).waitFor()
    assert.match(await page.locator('.panel-token').innerText(), new RegExp(`slc_…${tokenOf('acme-prod').slice(-4)}`))

    await browser.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.click('[aria-label="Copy curl"]')
    const copied = () => page.evaluate('navigator.clipboard.readText()') as Promise<string>
    await until('it is copied', async () => (await copied()).includes('$SLUICE_TOKEN'))
    assert.ok(!(await page.content()).includes(tokenOf('acme-prod')), 'the token is masked')
    await page.getByLabel('with token').check()
    await page.click('[aria-label="Copy curl"]')
    await until('with the token', async () => (await copied()).includes(tokenOf('acme-prod')))
    await page.getByLabel('with token').uncheck()

    const downloading = page.waitForEvent('download')
    await page.click('text=Download CSV')
    const file = readFileSync(await (await downloading).path(), 'utf8')
    assert.match(file, /^day,interface,calls,units,refused,bytes\n/)
    const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
    const units = file
      .split('\n')
      .filter((line) => line.startsWith(yesterday))
      .map((line) => Number(line.split(',')[3]))
    assert.equal(
      units.reduce((sum, one) => sum + one, 0),
      served.unitsYesterday,
    )

    const kept = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state])',
    )
    assert.doesNotMatch(String(kept), /slc_/)
    assert.deepEqual(errors, [])
    await page.reload()
    await page.locator('#token').waitFor()
    assert.equal(await page.inputValue('#token'), '')
    const output = served.running.stdout() + served.running.stderr()
    assert.ok(!output.includes(tokenOf('acme-prod')), 'no token in the log')
  })

  test('closes one of its own connections after a second click; another customer sees none of it', async () => {
    const socket = await connect('borealis-prod')
    const ended = once(socket, 'close')
    await using browser = await startChromium()
    const { page, errors } = await browser.open(url)
    await signIn(page, 'delta-desk-prod')
    await page.locator('.panel-connections', { hasText: 'Nothing is open' }).waitFor()
    await page.click('text=Sign out')
    await page.locator('#token').waitFor()
    await signIn(page, 'borealis-prod')
    const button = page.locator('.panel-connections button')
    await button.focus()
    await page.keyboard.press('Enter')
    await page.locator('text=Really close?').waitFor()
    assert.equal(socket.readyState, WebSocket.OPEN)
    await page.keyboard.press('Enter')
    await ended
    await page.locator('.panel-connections', { hasText: 'Nothing is open' }).waitFor()
    assert.deepEqual(errors, [])
  })

  test('a token that ends while the page is open: it is asked for again, with the reason', async () => {
    await using browser = await startChromium()
    const { page } = await browser.open(url)
    await signIn(page, 'delta-desk-prod')
    const admin = `http://${await served.running.address('admin')}/v1/subscriptions/delta-desk-prod/suspend`
    const headers = { authorization: `Bearer ${served.owner}`, 'content-type': 'application/json' }
    const suspended = await fetch(admin, { method: 'POST', headers, body: '{}' })
    assert.ok(suspended.ok, await suspended.text())
    await page.locator('#token').waitFor({ timeout: 60_000 })
    await page.locator('[role=alert]').waitFor()
  })

  test('a customer of SQL alone stays signed in, and is shown no connections of products that it does not have', async () => {
    const headers = { authorization: `Bearer ${served.owner}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ name: 'sql-only', customer: 'acme', plan: 'build', products: ['indexer'] })
    const made = await fetch(`http://${await served.running.address('admin')}/v1/subscriptions`, {
      ...{ method: 'POST', headers, body },
    })
    assert.equal(made.status, 201, await made.clone().text())
    const { token } = (await made.json()) as { token: string }
    await until('the token is valid', async () => {
      const response = await fetch(new URL('/v1/account', url), { headers: { 'x-token': token } })
      return response.status === 200
    })
    await using browser = await startChromium()
    const { page, errors } = await browser.open(url)
    await page.fill('#token', token)
    await page.click('button[type=submit]')
    await page.locator('h1', { hasText: 'sql-only' }).waitFor()
    await loaded(page)
    assert.equal(await page.locator('.panel-connections').count(), 0)
    assert.equal(await page.locator('#token').count(), 0)
    assert.deepEqual(errors, [])
  })

  test('axe finds nothing, nothing is wider than the window, in every theme and width', async () => {
    const socket = await connect('acme-prod')
    await using browser = await startChromium()
    const { page } = await browser.open(url)
    await page.evaluate(AXE)
    const findings = await inAllSizes(page, 'account-sign-in')
    await signIn(page, 'acme-prod')
    findings.push(...(await inAllSizes(page, 'account')))
    await page.click('text=Sign out')
    await signIn(page, 'cobalt-labs-prod')
    findings.push(...(await inAllSizes(page, 'account-other')))
    socket.terminate()
    assert.deepEqual(findings, [])
  })
})

async function loaded(page: Page): Promise<void> {
  await until('everything is loaded', async () => (await page.locator('.waiting').count()) === 0)
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe finds, and what is wider than the window, at each width in both themes. With SLUICE_SCREENSHOTS, pictures go to that folder. */
async function inAllSizes(page: Page, name: string): Promise<string[]> {
  const findings: string[] = []
  const shots = process.env['SLUICE_SCREENSHOTS']
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme })
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 })
      const wide = Number(await page.evaluate('document.documentElement.scrollWidth'))
      const found = wide > width ? [`${wide} pixels wide`] : []
      found.push(
        ...((await page.evaluate(
          "axe.run('html', { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 2).map((node) => node.html.slice(0, 120) + ' ' + node.failureSummary.slice(0, 160)).join(' | ')))",
        )) as string[]),
      )
      findings.push(...found.map((finding) => `${name} ${colorScheme} ${width}: ${finding}`))
      if (shots !== undefined)
        await page.screenshot({ path: `${shots}/${name}-${colorScheme}-${width}.png`, fullPage: true })
    }
  }
  return findings
}
