import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { openConsole } from '../../src/processes/compose/services/console.ts'
import { NEEDS_CHROMIUM } from '../page/rig.ts'
import { startTestAdmin } from '../support/admin.ts'
import { startChromium } from '../support/chromium.ts'
import { startEngines } from '../support/store-engines.ts'
import { startStandIn } from './stand-in.ts'

const VIEWS = ['overview', 'customers', 'customers/acme', 'subscriptions', 'subscriptions/acme-prod', 'usage']
const MORE = ['connections', 'nodes', 'shreds', 'sender', 'indexer', 'plans', 'audit', 'notices', 'admins']
const ACTIONS_MAX = 12

async function signIn(page: Page): Promise<void> {
  await page.fill('#token', 'sla_right')
  await page.click('text=Sign in')
  await page.locator('h1', { hasText: 'Overview' }).waitFor()
}

describe('the console in Chromium, with responses from memory', { ...NEEDS_CHROMIUM, timeout: 240_000 }, () => {
  test('first customer to handover card in at most 12 actions, and a reload keeps the session', async () => {
    await using api = await startStandIn()
    await using browser = await startChromium()
    const { page } = await browser.open(api.url)
    let actions = 0
    const act = async (action: () => Promise<unknown>): Promise<void> => {
      actions += 1
      await action()
    }
    await act(() => page.fill('#token', 'sla_right'))
    await act(() => page.click('text=Sign in'))
    await act(() => page.click('text=Add the first customer'))
    await act(() => page.fill('#field-name', 'acme'))
    await act(() => page.click('dialog button[type=submit]'))
    await act(() => page.click('main button:has-text("Create subscription")'))
    await act(() => page.fill('#field-name', 'acme-prod'))
    await act(() => page.click('dialog button[type=submit]'))
    await page.locator('dialog.secret', { hasText: 'Shown once' }).waitFor()
    const token = await page.locator('[data-secret="token"]').innerText()
    assert.match(token, /^slc_/)
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
    for (const { route, csrf, key } of api.seen.filter(({ route: id }) => /Add|Create/.test(id)))
      assert.ok(csrf !== undefined && key !== undefined, route)
    await page.reload()
    await page.locator('h1', { hasText: 'acme-prod' }).waitFor()
  })

  test('rotates a token, finds who used what yesterday and closes a connection', async () => {
    await using api = await startStandIn({ isFilled: true })
    await using browser = await startChromium()
    const { page, errors } = await browser.open(api.url)
    await signIn(page)
    errors.length = 0
    await page.keyboard.press('/')
    await page.keyboard.type('cobalt-labs-prod')
    await page.keyboard.press('Enter')
    await page.locator('h1', { hasText: 'cobalt-labs-prod' }).waitFor()
    await page.click('text=Replace token')
    await page.click('dialog button[type=submit]')
    assert.match(await page.locator('[data-secret="token"]').innerText(), /^slc_/)
    await page.click('[aria-label="Copy token"]')
    await page.click('dialog.secret >> text=/^Close$/')

    await page.click('nav >> text=Usage')
    await page.click('text=Yesterday')
    await page.locator('tr', { hasText: 'acme-prod' }).first().waitFor()

    await page.click('nav >> text=Connections')
    await page.click('[aria-label="Close the connection of acme-prod"]')
    const dialog = page.locator('dialog')
    assert.match(await dialog.innerText(), /acme-prod/)
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    assert.equal(await page.evaluate('document.activeElement.ariaLabel'), 'Close the connection of acme-prod')
    await page.keyboard.press('Enter')
    await page.click('dialog button[type=submit]')
    await page.locator('tr', { hasText: 'acme-prod' }).waitFor({ state: 'detached' })
    assert.deepEqual(errors, [])
  })

  test('signs in at the real listener under its own content security policy, manages administrators, and signs out', async () => {
    await using engines = await startEngines()
    await using bench = await engines.bench('sqlite')
    await using store = await bench.open()
    await using admin = await startTestAdmin(store, { page: (await openConsole()).page })
    const { secret } = await admin.add('ann', 'owner')
    await using browser = await startChromium()
    const { page, errors } = await browser.open(admin.url)
    await page.fill('#token', 'sla_wrong')
    await page.click('text=Sign in')
    await page.locator('[role=alert]').waitFor()
    await page.fill('#token', secret)
    await page.click('text=Sign in')
    await page.click('nav >> text=Administrators')
    await page.click('main button:has-text("Add administrator")')
    await page.fill('#field-name', 'bob')
    await page.click('dialog button[type=submit]')
    assert.match(await page.locator('[data-secret="token"]').innerText(), /^sla_/)
    await page.click('[aria-label="Copy token"]')
    await page.click('dialog.secret >> text=/^Close$/')
    await page.locator('tr', { hasText: 'bob' }).waitFor()
    await page.reload()
    await page.locator('tr', { hasText: 'bob' }).waitFor()
    await page.click('text=Sign out')
    await page.locator('#token').waitFor()
    assert.deepEqual(
      errors.filter((error) => /Content Security Policy/.test(error)),
      [],
    )
  })

  test('a read-only administrator is offered no change and no administrators', async () => {
    await using api = await startStandIn({ role: 'read-only', isFilled: true })
    await using browser = await startChromium()
    const { page } = await browser.open(api.url)
    await signIn(page)
    assert.equal(await page.locator('nav >> text=Administrators').count(), 0)
    await page.goto(`${api.url}#/subscriptions/acme-prod`)
    await page.locator('h1', { hasText: 'acme-prod' }).waitFor()
    for (const name of ['Cancel', 'Suspend', 'Replace token', 'Change limits', 'Add note', 'Record refund'])
      assert.equal(await page.locator(`main button:has-text("${name}")`).count(), 0, name)
  })

  test('axe finds nothing, nothing is wider than the window, in every view, theme and width', async () => {
    await using api = await startStandIn({ isFilled: true })
    await using browser = await startChromium()
    const { page } = await browser.open(api.url)
    const findings: string[] = []
    const shots = process.env['SLUICE_SCREENSHOTS']
    const look = async (view: string, theme: 'dark' | 'light', width: number) => {
      const wide = Number(await page.evaluate('document.documentElement.scrollWidth'))
      if (wide > width) findings.push(`${view} ${width}: ${wide} pixels wide`)
      if (shots !== undefined)
        await page.screenshot({ path: `${shots}/${view.replace('/', '-')}-${theme}-${width}.png` })
    }
    await look('sign-in', 'light', 1280)
    findings.push(...(await axeFindings(page)).map((found) => `sign-in: ${found}`))
    await signIn(page)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      for (const width of [390, 768, 1440]) {
        await page.setViewportSize({ width, height: 900 })
        for (const view of [...VIEWS, ...MORE]) {
          await page.goto(`${api.url}#/${view}`)
          await page.locator('main h1').waitFor()
          for (const waiting of await page.locator('.waiting').all()) await waiting.waitFor({ state: 'detached' })
          await look(view, colorScheme, width)
          if (width !== 768)
            findings.push(...(await axeFindings(page)).map((found) => `${view} ${colorScheme} ${width}: ${found}`))
        }
      }
    }
    assert.deepEqual(findings, [])
  })
})

async function axeFindings(page: Page): Promise<string[]> {
  await page.evaluate(readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'))
  return (await page.evaluate(
    `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 2).map((node) => node.html.slice(0, 120) + ' ' + node.failureSummary.slice(0, 160)).join(' | ')))`,
  )) as string[]
}
