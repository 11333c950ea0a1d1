import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { until } from '../../src/platform/process/test-wait.ts'
import { type Chromium, startChromium } from '../support/machine/chromium.ts'
import { NEEDS_CHROMIUM, type PageRig, startPageRig, statOf, untilState, WEBGL } from './rig.ts'

/** Common window sizes: wall display, desktop, laptops, tablets, phone. */
const WINDOWS = [
  [1920, 1080],
  [1440, 900],
  [1366, 768],
  [1280, 720],
  [1024, 768],
  [768, 1024],
  [390, 844],
] as const
/** From here on the status strip is one line. */
const EXECUTOR_WIDTH = 1280
/** From here on, with this width, all parts fit on one screen. */
const WHOLE_HEIGHT = 900
const STRIP_LINE_PX = 44
/** Wider than any column of the page. */
const LONG_NAME = 'Concentrated Liquidity Position Manager of the Seventh Exchange'

describe('the layout of the page', { timeout: 240_000, ...NEEDS_CHROMIUM }, () => {
  let rig: PageRig
  let browser: Chromium
  let page: Page

  before(async () => {
    rig = await startPageRig()
    browser = await startChromium(WEBGL)
    ;({ page } = await browser.open(rig.url))
    await page.emulateMedia({ reducedMotion: 'reduce' })
    await untilState(page, 'live')
    await until('lanes are full', async () => (await page.locator('[data-lane="Verified"] .block-card').count()) >= 4)
    await until('the tables are full', async () => (await page.locator('.top-table tbody tr:not(.empty)').count()) > 15)
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await rig[Symbol.asyncDispose]()
  })

  for (const [width, height] of WINDOWS) {
    test(`${width} × ${height}: nothing overflows, no card or number is truncated`, async () => {
      await page.setViewportSize({ width, height })
      const block = Number(await statOf(page, 'block')) - 8
      const contract = [...rig.ring.labels.keys()][0]
      for (const hash of ['', `block=${block}`, `contract=${contract}`, 'api']) {
        await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
        await page.locator(hash === 'api' ? 'main.api' : 'main.live').waitFor()
        if (hash.includes('=')) await page.locator('.drawer table').first().waitFor()
        assert.deepEqual(await cutOrOutside(page, hash.includes('=') ? '.drawer' : 'body'), [], `#${hash}`)
      }
      await page.evaluate(`location.hash = ''`)
      assert.deepEqual(await wideParts(page), [])
      if (width < EXECUTOR_WIDTH) return
      if (height >= WHOLE_HEIGHT) {
        const outside = await page.evaluate(
          `[...document.querySelectorAll('main [data-part]')].filter((part) => part.getBoundingClientRect().bottom > innerHeight).map((part) => part.dataset.part)`,
        )
        assert.deepEqual(outside, [])
        assert.equal(await page.evaluate('document.documentElement.scrollHeight'), height)
      }
      const strip = await page.locator('.strip').boundingBox()
      assert.ok((strip?.height ?? 99) <= STRIP_LINE_PX, `the strip is ${strip?.height} high`)
    })
  }

  test('a long name is truncated before the numbers beside it', async () => {
    const [, second] = [...rig.ring.labels.keys()] as [string, string]
    await page.evaluate(`location.hash = 'contract=${second}'`)
    await page.fill('input[name="label"]', LONG_NAME)
    await page.press('input[name="label"]', 'Enter')
    await page.evaluate(`location.hash = ''`)
    await page
      .locator('.top-table .name', { hasText: LONG_NAME.slice(0, 20) })
      .first()
      .waitFor()
    for (const [width, height] of WINDOWS.filter(([each]) => [1280, 768, 390].includes(each))) {
      await page.setViewportSize({ width, height })
      assert.deepEqual(await cutOrOutside(page), [], `${width}`)
    }
  })

  test('changing numbers and pausing move nothing', async () => {
    await page.setViewportSize({ width: 1280, height: 900 })
    const before = await page.evaluate(POSITIONS)
    const seq = await statOf(page, 'seq')
    await until('numbers changed', async () => Number(await statOf(page, 'seq')) > Number(seq) + 20)
    assert.deepEqual(await page.evaluate(POSITIONS), before)
    await page.locator('.pause').click()
    await untilState(page, 'paused')
    assert.deepEqual(await page.evaluate(POSITIONS), before)
    await page.locator('.pause').click()
    await untilState(page, 'live')
  })

  test('a higher window shows more blocks per lane, none truncated', async () => {
    const cards = () => page.locator('[data-lane="Verified"] .block-card').count()
    await page.setViewportSize({ width: 1440, height: 900 })
    await until('few', async () => (await cards()) === 5)
    await page.setViewportSize({ width: 1920, height: 1400 })
    await until('more', async () => (await cards()) > 7)
    assert.deepEqual(await cutOrOutside(page), [])
  })
})

/** The page and its parts that are wider than their place. */
async function wideParts(page: Page): Promise<string[]> {
  return (await page.evaluate(
    `[document.documentElement, ...document.querySelectorAll('main, main [data-part]')].filter((part) => part.scrollWidth > part.clientWidth).map((part) => [part.tagName, part.className, part.scrollWidth, part.clientWidth].join(' '))`,
  )) as string[]
}

/** The position of each number. */
const POSITIONS = `[...document.querySelectorAll('main [data-stat], .pause, .lane, .panel')].map((element) => {
  const { left, top, width } = element.getBoundingClientRect()
  // Widths of the numbers may change; their positions and the panels may not.
  return [element.dataset.stat ?? element.className, Math.round(left), Math.round(top), element.dataset.stat ? 0 : Math.round(width)].join(' ')
})`

/**
 * Elements within a root that are outside the window, or cut by an ancestor that hides what does not fit. What scrolls is
 * never cut, and names may end in an ellipsis. Parts below the fold are laid out when they are scrolled to, so each is.
 */
async function cutOrOutside(page: Page, root = 'body'): Promise<string[]> {
  return (await page.evaluate(`(${LOOK})(${JSON.stringify(root)})`)) as string[]
}

const LOOK = `async (root) => {
  const LOOKED_THROUGH = 'pre, canvas, .graph, .sr, svg, .u-wrap, .txns'
  const found = new Set()
  const isStacked = document.documentElement.scrollHeight > innerHeight * 1.5
  const parts = root === 'body' && isStacked ? [...document.querySelectorAll('.live .panel')] : []
  for (const part of [document.body, ...parts]) {
    part.scrollIntoView()
    // Charts get their new size after the first frame, by an observer.
    for (let frame = 0; frame < 2; frame++) await new Promise((resolve) => requestAnimationFrame(resolve))
    const styles = new Map()
    for (const element of (part === document.body ? document.querySelector(root) : part).querySelectorAll('*')) look(element, styleOf)
    function styleOf(element) {
      if (!styles.has(element)) {
        const { overflowX, overflowY, textOverflow, contain, position } = getComputedStyle(element)
        // Browsers report \`content\` and \`strict\` as such; both contain \`paint\`.
        const hides = overflowX !== 'visible' || /paint|content|strict/.test(contain)
        const [scrollsX, scrollsY] = [overflowX, overflowY].map((how) => how === 'auto' || how === 'scroll')
        styles.set(element, { hides, scrollsX, scrollsY, ends: textOverflow === 'ellipsis', position })
      }
      return styles.get(element)
    }
  }
  scrollTo(0, 0)
  return [...found]

  function look(element, styleOf) {
    const box = element.getBoundingClientRect()
    if (box.width === 0 || box.height === 0 || element.closest(LOOKED_THROUGH)) return
    if (!element.checkVisibility({ contentVisibilityAuto: true, visibilityProperty: true })) return
    const name = element.tagName.toLowerCase() + '.' + element.className + ' "' + element.textContent.slice(0, 24) + '"'
    const own = styleOf(element)
    const overflows = element.scrollWidth > element.clientWidth + 1
    if (own.hides && !own.scrollsX && !own.ends && overflows && !element.matches('input, .card-line, .stage-bar'))
      found.add('does not fit: ' + name)
    // Content above or below is not truncated where it can be scrolled to.
    let isRolled = false
    for (let above = element.parentElement; above !== null; above = above.parentElement) {
      const style = styleOf(above)
      if (style.scrollsX || style.ends) return
      isRolled ||= style.scrollsY
      if (!style.hides) continue
      const edge = above.getBoundingClientRect()
      const isCut = box.left < edge.left - 1 || box.right > edge.right + 1
      if (isCut || (!isRolled && (box.top < edge.top - 1 || box.bottom > edge.bottom + 1)))
        found.add('cut by ' + above.className + ': ' + name)
      if (style.position === 'fixed') break
    }
    if (box.right > innerWidth + 1 || box.left < -1) found.add('outside: ' + name)
  }
}`
