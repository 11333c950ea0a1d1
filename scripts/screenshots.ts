/**
 * Screenshots of every view of the live page, in both themes, for desktop and phone, with the real service and the simulated chain.
 *
 *     npm run screenshots                          into dist/screenshots
 *     npm run screenshots -- --seconds 300         after five minutes, when the chart is full
 *     npm run screenshots -- --readme              also the two of the README, into docs/images
 */
import { copyFile, mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import { startPageRig, untilState, WEBGL } from '../test/page/rig.ts'
import { startChromium } from '../test/support/machine/chromium.ts'

const root = join(import.meta.dirname, '..')
const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '75' }, readme: { type: 'boolean', default: false } },
})
const target = join(root, 'dist/screenshots')
const PICTURE_BYTES_MAX = 300_000
const PAGE_MARGIN = 8
const SIZES = { executor: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } } as const
/** The two screenshots of the README. */
const BEST = { 'live-dark-executor': 'live-page.png', 'block-light-executor': 'live-page-block.png' } as const

await mkdir(target, { recursive: true })
await using rig = await startPageRig({ blockMs: 400, tps: 300, abandonedShare: 0.03 })
await using browser = await startChromium(WEBGL)
const { page, errors } = await browser.open(rig.url)
await page.setViewportSize(SIZES.executor)
await untilState(page, 'live')
process.stdout.write(`waiting ${values.seconds} s for the charts to fill\n`)
await pause(Number(values.seconds) * 1000)

const [contract = ''] = rig.ring.labels.keys()
const views = { live: '#', block: '#block=', contract: `#contract=${contract}`, api: '#api' }
for (const [size, viewport] of Object.entries(SIZES)) {
  await page.setViewportSize(viewport)
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme })
    for (const [view, hash] of Object.entries(views)) {
      // A change of the hash keeps the state of the page.
      await page.evaluate(
        `location.hash = ${JSON.stringify(view === 'block' ? `${hash}${await recentBlock(page)}` : hash)}`,
      )
      await settle(page, view)
      const path = join(target, `${view}-${colorScheme}-${size}.png`)
      const isComplete = size === 'phone' && (view === 'live' || view === 'api')
      if (isComplete) await showWhole(page)
      await page.screenshot({ path })
      if (isComplete) await page.setViewportSize(viewport)
      process.stdout.write(`${path}\n`)
    }
  }
}
if (errors.length > 0) throw new Error(`errors of the page: ${errors.join('; ')}`)

if (values.readme) {
  const images = join(root, 'docs/images')
  await mkdir(images, { recursive: true })
  for (const [name, file] of Object.entries(BEST)) {
    const path = join(images, file)
    await copyFile(join(target, `${name}.png`), path)
    const { size } = await stat(path)
    if (size > PICTURE_BYTES_MAX) throw new Error(`${file} has ${size} bytes, at most ${PICTURE_BYTES_MAX}`)
    process.stdout.write(`${path} ${size} bytes\n`)
  }
}

/** Old enough to have all stages, and young enough to be tracked. */
async function recentBlock(of: Page): Promise<number> {
  return (
    Number(
      await of.evaluate(`fetch('v1/status').then((answer) => answer.json()).then((status) => status.block_number)`),
    ) - 12
  )
}

/** Sets the viewport to the height of the content, twice, because the height of a part is known once it was in view. */
async function showWhole(of: Page): Promise<void> {
  for (let look = 0; look < 2; look++) {
    const bottom = await of.evaluate(`document.querySelector('main').getBoundingClientRect().bottom + scrollY`)
    const height = Math.ceil(Number(bottom)) + PAGE_MARGIN
    await of.setViewportSize({ width: SIZES.phone.width, height })
    await pause(1500)
  }
}

/** Waits until the data of the view is loaded and the graph is drawn in the theme. */
async function settle(of: Page, view: string): Promise<void> {
  if (view === 'block') await of.locator('.drawer table').nth(2).waitFor()
  if (view === 'contract') await of.locator('.drawer table').nth(1).waitFor()
  if (view === 'live') await of.locator('.graph canvas').first().waitFor({ state: 'attached' })
  await pause(2500)
}
