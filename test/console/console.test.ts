import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { WebSocket } from 'ws'
import { until } from '../../src/platform/process/test-wait.ts'
import { NEEDS_CHROMIUM } from '../page/rig.ts'
import { startChromium } from '../support/chromium.ts'
import { type ConsoleProcess, NEAR_SHARE, startConsoleProcess } from './rig.ts'

/** Each view with its heading. */
const VIEWS: readonly (readonly [string, string])[] = [
  ['overview', 'Overview'],
  ['customers', 'Customers'],
  ['customers/acme', 'acme'],
  ['subscriptions', 'Subscriptions'],
  ['subscriptions/acme-prod', 'acme-prod'],
  ['usage', 'Usage'],
  ['connections', 'Connections'],
  ['nodes', 'Nodes'],
  ['shreds', 'Shreds'],
  ['sender', 'Sender'],
  ['indexer', 'Indexer'],
  ['plans', 'Products and plans'],
  ['audit', 'Audit log'],
  ['notices', 'Notices'],
  ['admins', 'Administrators'],
]
/** Dialogs with every kind of field, and some that end something. */
const DIALOGS: Readonly<Record<string, readonly string[]>> = {
  customers: ['Add customer'],
  'customers/acme': ['Create subscription', 'Remove', 'Add note'],
  'subscriptions/acme-prod': ['Change limits', 'Replace token'],
  admins: ['Add administrator'],
}
const THEMES = ['light', 'dark'] as const
const WIDTHS = [390, 768, 1440]
const ACTIONS_MAX = 12

async function signIn(page: Page, token: string): Promise<void> {
  await page.fill('#token', token)
  await page.click('text=Sign in')
  await page.locator('h1', { hasText: 'Overview' }).waitFor()
}

describe('the console of a real serve, in Chromium', { ...NEEDS_CHROMIUM, timeout: 400_000 }, () => {
  test('first customer to handover card in at most 12 actions; administrators; nothing is kept', async () => {
    await using served = await startConsoleProcess()
    await using browser = await startChromium()
    const { page, errors } = await browser.open(served.url)
    await page.fill('#token', 'sla_wrong')
    await page.click('text=Sign in')
    await page.locator('[role=alert]').waitFor()
    let actions = 0
    const act = async (action: () => Promise<unknown>): Promise<void> => {
      actions += 1
      await action()
    }
    await act(() => page.fill('#token', served.owner))
    await act(() => page.click('text=Sign in'))
    await act(() => page.click('text=Add the first customer'))
    await act(() => page.fill('#field-name', 'acme'))
    await act(() => page.click('dialog button[type=submit]'))
    await act(() => page.click('main button:has-text("Create subscription")'))
    await act(() => page.fill('#field-name', 'acme-prod'))
    await act(() => page.click('dialog button[type=submit]'))
    await page.locator('dialog.secret', { hasText: 'Shown once' }).waitFor()
    const token = await page.locator('[data-secret="token"]').innerText()
    assert.match(token, /^slc_[0-9A-Za-z]{38}$/)
    assert.ok((await page.locator('dialog.secret pre').innerText()).includes(token), 'the card has the token')
    await page.evaluate(AXE)
    assert.deepEqual(await inAllSizes(page, 'card', 'dialog'), [])
    await page.keyboard.press('Escape')
    await page.locator('dialog.secret [role=alert]', { hasText: 'Nothing was copied' }).waitFor()
    await act(() => page.click('text=Copy the card'))
    await page.locator('text=Card copied').waitFor()
    await act(() => page.click('dialog.secret >> text=/^Close/'))
    await page.locator('dialog').waitFor({ state: 'detached' })
    assert.ok(actions <= ACTIONS_MAX, `${actions} actions`)
    assert.ok(!(await page.content()).includes(token), 'the token is gone')
    const kept = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])',
    )
    assert.doesNotMatch(String(kept), /sla_|slc_|csrf/)
    await page.reload()
    await page.locator('h1', { hasText: 'acme-prod' }).waitFor()

    await page.click('nav >> text=Administrators')
    await page.click('main button:has-text("Add administrator")')
    await page.fill('#field-name', 'bob')
    await page.click('dialog button[type=submit]')
    assert.match(await page.locator('[data-secret="token"]').innerText(), /^sla_/)
    await page.click('[aria-label="Copy token"]')
    await page.click('dialog.secret >> text=/^Close$/')
    await page.locator('tr', { hasText: 'bob' }).waitFor()
    await page.click('text=Sign out')
    await page.locator('#token').waitFor()
    assert.deepEqual(
      errors.filter((error) => /Content Security Policy|Error:/.test(error)),
      [],
    )
    const output = served.running.stdout() + served.running.stderr()
    for (const secret of [token, served.owner]) assert.ok(!output.includes(secret), 'no token in the log')
  })

  describe('with customers, usage and the embedded chain', () => {
    let served: ConsoleProcess
    before(async () => {
      served = await startConsoleProcess({ isFilled: true })
    })
    after(() => served[Symbol.asyncDispose]())

    const connect = async (name: string): Promise<WebSocket> => {
      const headers = { 'x-token': served.tokens.get(name) ?? '' }
      const socket = new WebSocket(`ws://${await served.running.address('ws')}`, { headers })
      await once(socket, 'open')
      socket.send('{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}')
      await once(socket, 'message')
      return socket
    }
    const statusOf = async (token: string): Promise<number> => {
      const response = await fetch(`http://${await served.running.address('rpc')}`, {
        method: 'POST',
        headers: { 'x-token': token, 'content-type': 'application/json' },
        body: '{"jsonrpc":"2.0","id":1,"method":"getSlot"}',
      })
      await response.arrayBuffer()
      return response.status
    }

    test('rotates a token: the new one works, the old one is refused', async () => {
      await using browser = await startChromium()
      const { page, errors } = await browser.open(served.url)
      await signIn(page, served.owner)
      errors.length = 0
      await page.locator('[data-part=near] tr', { hasText: 'borealis-prod' }).waitFor()
      assert.match(await page.locator('[data-part=near]').innerText(), new RegExp(`${100 * NEAR_SHARE} %`))
      await page.locator('[data-part=ending] tr', { hasText: 'delta-desk-prod' }).waitFor()
      assert.match(await page.locator('[data-stat=subscriptions]').innerText(), /4\s*of 5/)
      await page.keyboard.press('/')
      await page.keyboard.type('cobalt-labs-prod')
      await page.keyboard.press('Enter')
      await page.locator('h1', { hasText: 'cobalt-labs-prod' }).waitFor()
      await page.click('text=Replace token')
      await page.selectOption('#field-grace', '')
      await page.click('dialog button[type=submit]')
      const token = await page.locator('[data-secret="token"]').innerText()
      await page.click('[aria-label="Copy token"]')
      await page.click('dialog.secret >> text=/^Close$/')
      await until('the new token works', async () => (await statusOf(token)) === 200)
      assert.equal(await statusOf(served.tokens.get('cobalt-labs-prod') ?? ''), 401)
      assert.deepEqual(errors, [])
    })

    test('finds who used what yesterday', async () => {
      await using browser = await startChromium()
      const { page, errors } = await browser.open(served.url)
      await signIn(page, served.owner)
      errors.length = 0
      await page.click('nav >> text=Usage')
      await page.click('text=Yesterday')
      const first = page.locator('main tbody tr').first()
      const units = served.unitsYesterday.toLocaleString('en-US')
      await first.filter({ hasText: 'acme-prod' }).filter({ hasText: units }).waitFor()
      assert.equal(await page.locator('main tbody tr').count(), 4)
      await first.locator('a', { hasText: 'acme-prod' }).click()
      await page.locator('[data-part=usage] tr', { hasText: 'getAccountInfo' }).waitFor()
      assert.deepEqual(errors, [])
    })

    test('closes a live WebSocket connection', async () => {
      const socket = await connect('acme-prod')
      const ended = once(socket, 'close')
      await using browser = await startChromium()
      const { page, errors } = await browser.open(served.url)
      await signIn(page, served.owner)
      errors.length = 0
      await page.click('nav >> text=Connections')
      await page.click('[aria-label="Close the connection of acme-prod"]')
      const dialog = page.locator('dialog')
      assert.match(await dialog.innerText(), /acme-prod/)
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
      assert.equal(await page.evaluate('document.activeElement.ariaLabel'), 'Close the connection of acme-prod')
      assert.equal(socket.readyState, WebSocket.OPEN)
      await page.keyboard.press('Enter')
      await page.click('dialog button[type=submit]')
      await ended
      await page.locator('tr', { hasText: 'acme-prod' }).waitFor({ state: 'detached' })
      assert.deepEqual(errors, [])
    })

    test('a read-only administrator is offered no change and no administrators', async () => {
      await using browser = await startChromium()
      const { page } = await browser.open(served.url)
      await signIn(page, served.reader)
      assert.equal(await page.locator('nav >> text=Administrators').count(), 0)
      await show(page, served.url, ['subscriptions/acme-prod', 'acme-prod'])
      for (const name of ['Cancel', 'Suspend', 'Replace token', 'Change limits', 'Add note', 'Record refund'])
        assert.equal(await page.locator(`main button:has-text("${name}")`).count(), 0, name)
      await show(page, served.url, ['nodes', 'Nodes'])
      assert.equal(await page.locator('main button').count(), 0)
    })

    test('axe finds nothing, nothing is wider than the window, in every view and dialog, theme and width', async () => {
      const sockets = [await connect('acme-prod'), await connect('delta-desk-prod')]
      await using browser = await startChromium()
      const { page } = await browser.open(served.url)
      await page.evaluate(AXE)
      const findings = await inAllSizes(page, 'sign-in')
      await signIn(page, served.owner)
      for (const view of VIEWS) {
        await show(page, served.url, view)
        findings.push(...(await inAllSizes(page, view[0])))
        for (const name of DIALOGS[view[0]] ?? []) {
          await page
            .locator('main button', { hasText: new RegExp(`^${name}$`) })
            .first()
            .click()
          await page.locator('dialog').waitFor()
          await loaded(page)
          findings.push(...(await inAllSizes(page, `${view[0]} ${name}`, 'dialog')))
          await page.keyboard.press('Escape')
          await page.locator('dialog').waitFor({ state: 'detached' })
        }
      }
      for (const socket of sockets) socket.terminate()
      assert.deepEqual(findings, [])
    })
  })
})

async function show(page: Page, url: string, [view, heading]: readonly [string, string]): Promise<void> {
  await page.goto(`${url}#/${view}`)
  await page.locator('main h1', { hasText: new RegExp(`^${heading}$`) }).waitFor()
  await loaded(page)
}

async function loaded(page: Page): Promise<void> {
  await until('everything is loaded', async () => (await page.locator('.waiting').count()) === 0)
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe finds, and what is wider than the window, at each width in both themes. With SLUICE_SCREENSHOTS, pictures go to that folder. */
async function inAllSizes(page: Page, name: string, within = 'html'): Promise<string[]> {
  const findings: string[] = []
  const shots = process.env['SLUICE_SCREENSHOTS']
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme })
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 })
      const wide = Number(await page.evaluate('document.documentElement.scrollWidth'))
      const found = wide > width ? [`${wide} pixels wide`] : []
      found.push(...(await axeFindings(page, within, colorScheme === 'light' ? undefined : 'color-contrast')))
      findings.push(...found.map((finding) => `${name} ${colorScheme} ${width}: ${finding}`))
      if (shots !== undefined)
        await page.screenshot({ path: `${shots}/${name.replaceAll(/[/ ]/g, '-')}-${colorScheme}-${width}.png` })
    }
  }
  return findings
}

/** `rule`: only this one. A theme changes nothing but colours. */
async function axeFindings(page: Page, within: string, rule?: string): Promise<string[]> {
  const options = JSON.stringify({ resultTypes: ['violations'], ...(rule === undefined ? {} : { runOnly: [rule] }) })
  return (await page.evaluate(
    `axe.run('${within}', ${options}).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 2).map((node) => node.html.slice(0, 120) + ' ' + node.failureSummary.slice(0, 160)).join(' | ')))`,
  )) as string[]
}
