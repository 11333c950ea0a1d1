import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { until } from '../../src/platform/process/test-wait.ts'

const THEMES = ['light', 'dark'] as const
const WIDTHS = [390, 768, 1440]
/** Between them no element appears that neither has. */
const AXE_WIDTHS = [390, 1440]

export async function signIn(page: Page, token: string): Promise<void> {
  await page.fill('#token', token)
  await page.click('text=Sign in')
  await page.locator('h1', { hasText: 'Overview' }).waitFor()
}

export async function show(page: Page, url: string, [view, heading]: readonly [string, string]): Promise<void> {
  await page.goto(`${url}#/${view}`)
  await page.locator('main h1', { hasText: new RegExp(`^${heading}$`) }).waitFor()
  await loaded(page)
}

export async function loaded(page: Page): Promise<void> {
  await until('everything is loaded', async () => (await page.locator('.waiting').count()) === 0)
}

export const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Texts outside the window, where no part scrolls. */
const CLIPPED = `[...document.querySelectorAll('main *')]
  .filter((element) => element.closest('.table-box, svg, .sr') === null && element.checkVisibility())
  .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
  .map((element) => 'clipped: ' + element.outerHTML.slice(0, 120))
  .slice(0, 3)`

/** What axe finds, and what is wider than the window, at each width in both themes. With SLUICE_SCREENSHOTS, pictures go to that folder. */
export async function inAllSizes(page: Page, name: string, within = 'html'): Promise<string[]> {
  const findings: string[] = []
  const shots = process.env['SLUICE_SCREENSHOTS']
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme })
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 })
      const wide = Number(await page.evaluate('document.documentElement.scrollWidth'))
      const found = wide > width ? [`${wide} pixels wide`] : []
      found.push(...((await page.evaluate(CLIPPED)) as string[]))
      if (AXE_WIDTHS.includes(width)) found.push(...(await axeFindings(page, within)))
      findings.push(...found.map((finding) => `${name} ${colorScheme} ${width}: ${finding}`))
      if (shots !== undefined)
        await page.screenshot({ path: `${shots}/${name.replaceAll(/[/ ]/g, '-')}-${colorScheme}-${width}.png` })
    }
  }
  return findings
}

async function axeFindings(page: Page, within: string): Promise<string[]> {
  const options = JSON.stringify({ resultTypes: ['violations'] })
  return (await page.evaluate(
    `axe.run('${within}', ${options}).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 2).map((node) => node.html.slice(0, 120) + ' ' + node.failureSummary.slice(0, 160)).join(' | ')))`,
  )) as string[]
}
