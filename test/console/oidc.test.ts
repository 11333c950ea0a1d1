import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { NEEDS_CHROMIUM } from '../page/rig.ts'
import { CALLBACK } from '../support/admin/hostile-issuer.ts'
import { startOidcIssuer } from '../support/admin/oidc-issuer.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { startChromium } from '../support/machine/chromium.ts'
import { serve } from '../support/process/serve.ts'

const SECRET = 'client-secret-of-the-test'

describe('sign-in with OpenID Connect in the console of a real serve', { ...NEEDS_CHROMIUM, timeout: 240_000 }, () => {
  test('a person signs in with the button, adds a customer, and is signed out by a reload that takes the role', async () => {
    await using home = await temporaryFolder()
    await using issuer = await startOidcIssuer({ ann: { name: 'Ann Owner', groups: ['bosses'] } })
    const configure = (role: string): void =>
      writeFileSync(
        home.file('sluice.toml'),
        `[admin.oidc]\nissuer = "${issuer.url}"\nclientId = "sluice"\nclientSecret = "file:oidc.secret"\nlabel = "Example"\nroles = { bosses = "${role}" }\n`,
      )
    writeFileSync(home.file('oidc.secret'), `${SECRET}\n`, { mode: 0o600 })
    configure('owner')
    await using running = serve({ cwd: home.path, workers: 1, args: ['--no-demo'], env: {} })
    const url = `http://${await running.address('admin')}/`
    await running.line(/"msg":"started"/)
    await using browser = await startChromium()

    // The issuer is not open yet.
    const { page } = await browser.open(url)
    await page.click('text=Sign in with Example')
    await page.locator('text=Sign-in failed: the discovery document').waitFor()
    await issuer.open([
      { client_id: 'sluice', client_secret: SECRET, redirect_uris: [`${url.slice(0, -1)}${CALLBACK}`] },
    ])
    await until('the issuer is called again', async () => {
      await page.goto(url)
      await page.click('text=Sign in with Example')
      return page.url().startsWith(issuer.url)
    })
    await page.fill('#login', 'ann')
    await page.click('text=Continue')
    await page.locator('h1', { hasText: 'Overview' }).waitFor()
    assert.equal(page.url().split('#')[0], url, 'neither code nor state is in the address')
    assert.equal(await page.evaluate('document.referrer'), '')
    await page.locator('text=Ann Owner').first().waitFor()

    await page.click('text=Add the first customer')
    await page.fill('#field-name', 'acme')
    await page.click('dialog button[type=submit]')
    await page.locator('h1', { hasText: 'acme' }).waitFor()
    const tail = await sluice(['audit', 'tail', '--json'], { cwd: home.path })
    assert.match(tail.stdout, new RegExp(`"id": ?"oidc:${issuer.url}#ann"`))

    const reload = await sluice(['reload'], { cwd: home.path })
    assert.match(reload.stderr, /nothing changed/)
    configure('support')
    const changed = await sluice(['reload'], { cwd: home.path })
    assert.match(changed.stderr, /admin\.oidc\.roles\.bosses is in effect/)
    await page.goto(`${url}#plans`)
    await page.reload()
    await page.locator('text=Sign in with Example').waitFor()
    assert.ok(!running.stdout().includes(SECRET))
    assert.doesNotMatch(running.stdout(), /code=|state=|eyJ/)
  })
})
