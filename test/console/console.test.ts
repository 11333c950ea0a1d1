import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { until } from '../../src/platform/process/test-wait.ts'
import { NEEDS_CHROMIUM } from '../page/rig.ts'
import { startChromium } from '../support/machine/chromium.ts'
import { AXE, inAllSizes, loaded, show, signIn } from './page-checks.ts'
import { type ConsoleProcess, NEAR_SHARE, startConsoleProcess } from './rig.ts'

/** Each view with its heading. */
const VIEWS: readonly (readonly [string, string])[] = [
  ['overview', 'Overview'],
  ['customers', 'Customers'],
  ['customers/acme', 'acme'],
  ['subscriptions', 'Subscriptions'],
  ['subscriptions/acme-prod', 'acme-prod'],
  ['usage', 'Usage'],
  ['billing', 'Billing'],
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
const ACTIONS_MAX = 12

describe('the console of a real serve, in Chromium', { ...NEEDS_CHROMIUM, timeout: 500_000 }, () => {
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

    test('billing: the sink and its dead letters, the invoice of a month with its CSV, the export', async () => {
      await using browser = await startChromium()
      const { page, errors } = await browser.open(served.url)
      await signIn(page, served.biller)
      errors.length = 0
      await page.click('nav >> text=Billing')
      const sink = page.locator('[data-part=sink]')
      await sink.locator('tr', { hasText: 'delta-desk-prod' }).first().waitFor()
      assert.match(await sink.innerText(), /lago[\s\S]*sending[\s\S]*no subscription with this external id/)
      const invoice = page.locator('[data-part=invoice]')
      await page.selectOption('#invoice-month', { index: 1 })
      await invoice
        .locator('tr', { hasText: 'cobalt-labs-prod' })
        .filter({ hasText: /\d+\.\d\d EUR/ })
        .waitFor()
      await page.fill('[aria-label="Customer (all)"]', 'cobalt-labs')
      await until('one line is left', async () => (await invoice.locator('tbody tr').count()) === 1)
      const [saved] = await Promise.all([page.waitForEvent('download'), page.click('text=Download CSV')])
      assert.match(saved.suggestedFilename(), /^invoice-preview-\d{4}-\d\d-cobalt-labs\.csv$/)
      const [header, line, ...rest] = (await readFile(await saved.path(), 'utf8')).trim().split('\r\n')
      assert.match(header ?? '', /^customer,subscription,.*,bytes,.*,transfer,amount$/)
      assert.match(await invoice.locator('thead').innerText(), /sent[\s\S]*transfer[\s\S]*amount/i)
      const amount = (await invoice.locator('tbody tr b').innerText()).trim()
      assert.ok(Number(amount) > 0, amount)
      assert.match(line ?? '', new RegExp(`^cobalt-labs,cobalt-labs-prod,.*,${amount}$`))
      assert.deepEqual(rest, [])
      await page.selectOption('#export-month', { index: 0 })
      const [exported] = await Promise.all([page.waitForEvent('download'), page.click('text=Download usage')])
      assert.match(exported.suggestedFilename(), /^usage-\d{4}-\d\d-by-day\.csv$/)
      assert.match(await readFile(await exported.path(), 'utf8'), /^customer,[\s\S]*\nacme,/)
      assert.deepEqual(errors, [])
    })

    test('the overview draws 48 hours, and rates of this moment', async () => {
      await using browser = await startChromium()
      const { page, errors } = await browser.open(served.url)
      await signIn(page, served.owner)
      errors.length = 0
      const titles = page.locator('[data-part=hours] .line').first().locator('rect title')
      await until('each hour has its value', async () => (await titles.count()) === 48)
      assert.match((await titles.nth(46).textContent()) ?? '', /^\d{4}-\d\d-\d\d \d\d:00: [\d,.K]+ calls$/)
      const rate = page.locator('[data-stat=calls] .number')
      await until('calls are counted', async () => {
        for (let call = 0; call < 5; call++) await statusOf(served.tokens.get('acme-prod') ?? '')
        return Number(await rate.innerText()) > 0
      })
      await page.locator('[data-stat=calls] .spark polyline').waitFor({ state: 'attached' })
      assert.deepEqual(errors, [])
    })

    test('keys: every view, the list of keys, and the palette, which return the focus', async () => {
      await using browser = await startChromium()
      const { page, errors } = await browser.open(served.url)
      await signIn(page, served.owner)
      errors.length = 0
      const heading = (text: string) => page.locator('main h1', { hasText: new RegExp(`^${text}$`) }).waitFor()
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      assert.equal(await page.evaluate('document.activeElement.id'), 'main', 'the skip link')
      for (const [keys, title] of [
        ['gc', 'Customers'],
        ['gb', 'Billing'],
        ['gp', 'Products and plans'],
      ] as const) {
        await page.keyboard.type(keys)
        await heading(title)
      }
      await page.keyboard.press('?')
      await page.locator('dialog.keys tr, dialog.keys dl').first().waitFor()
      await page.keyboard.type('gc')
      await heading('Products and plans')
      await page.keyboard.press('Escape')
      await page.locator('dialog').waitFor({ state: 'detached' })
      assert.equal(await page.evaluate('document.activeElement.id'), 'main')
      await page.keyboard.press('/')
      await page.keyboard.press('Control+k')
      await page.keyboard.type('acme-t')
      await page.locator('[role=option][aria-selected=true]', { hasText: 'acme-test' }).waitFor()
      await page.keyboard.press('ArrowUp')
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
      await heading('acme-test')
      await page.keyboard.press('Control+k')
      await page.keyboard.type('nod')
      await page.keyboard.press('Enter')
      await heading('Nodes')
      assert.deepEqual(errors, [])
    })

    test('errors say what to do: API away, too many requests, no permission, session ended', async () => {
      await using browser = await startChromium()
      const { page } = await browser.open(served.url)
      await signIn(page, served.reader)
      await page.route('**/v1/customers*', (route) => route.abort())
      await page.click('nav a[href="#/customers"]')
      await page.locator('main [role=alert]', { hasText: 'Check that sluice serve is running' }).waitFor()
      const refused = { error: { code: 'too-many-requests', message: 'too many requests', fix: 'Retry in 3 s.' } }
      await page.unroute('**/v1/customers*')
      await page.route('**/v1/customers*', (route) => route.fulfill({ status: 429, json: refused }))
      await page.click('main button:has-text("Try again")')
      await page.locator('main [role=alert]', { hasText: 'Retry in 3 s.' }).waitFor()
      await page.unroute('**/v1/customers*')
      await page.click('main button:has-text("Try again")')
      await page.locator('main tr', { hasText: 'borealis' }).waitFor()
      assert.equal(await page.locator('main [role=alert]').count(), 0)
      assert.equal(await page.locator('nav >> text=Billing').count(), 0)
      await page.goto(`${served.url}#/billing`)
      await page.locator('main', { hasText: 'Your role, read-only, may not see this' }).waitFor()
      await page.keyboard.type('gr')
      await page.keyboard.type('gs')
      await page.locator('main h1', { hasText: 'Subscriptions' }).waitFor()
      await page.locator('main tr', { hasText: 'acme-prod' }).waitFor()
      await browser.context.clearCookies()
      await page.click('main >> text=acme-prod')
      await page.locator('text=The session has ended').waitFor()
      await page.fill('#token', served.reader)
      await page.click('button[type=submit]')
      await page.locator('h1', { hasText: 'acme-prod' }).waitFor()
    })

    test('axe finds nothing, nothing is wider than the window, in every view and dialog, theme and width', async () => {
      const sockets = [await connect('acme-prod'), await connect('delta-desk-prod')]
      await using browser = await startChromium()
      const { page } = await browser.open(served.url)
      await page.evaluate(AXE)
      await page.locator('#token').waitFor()
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
      for (const [name, key] of [
        ['keys', '?'],
        ['palette', 'Control+k'],
      ] as const) {
        await page.keyboard.press(key)
        await page.locator('dialog').waitFor()
        findings.push(...(await inAllSizes(page, name, 'dialog')))
        await page.keyboard.press('Escape')
      }
      for (const socket of sockets) socket.terminate()
      assert.deepEqual(findings, [])
    })
  })
})
