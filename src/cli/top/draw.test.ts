import assert from 'node:assert/strict'
import { test } from 'node:test'
import stringWidth from 'string-width'
import type { TopReport } from '../../processes/compose/top/report.ts'
import { makeReport } from '../../processes/compose/top/test-report.ts'
import { drawTop, share } from './draw.ts'
import { printCount, printRate, sparkline } from './labels.ts'
import { paintLine, wantsColour } from './paint.ts'
import { viewOf } from './rates.ts'

const ESCAPE = String.fromCharCode(27)

function picture(columns: number, rows: number, report: TopReport = makeReport(), isLive = true): string[] {
  const view = viewOf(report, { ...report, atMs: report.atMs + 1000 })
  const lines = drawTop(view, { columns, rows, history: { rpc: [1, 5, 9] }, nowMs: 0, isLive })
  return lines.map((line) => paintLine(line, { width: columns, colour: false }))
}

const many = (count: number): TopReport => {
  const report = makeReport()
  const [node] = report.upstreams
  const [subscription] = report.subscriptions
  assert.ok(node !== undefined && subscription !== undefined)
  return {
    ...report,
    upstreams: Array.from({ length: count }, (_, at) => ({ ...node, name: `node-${at}` })),
    subscriptions: Array.from({ length: count }, (_, at) => ({ ...subscription, id: `sub_${at}`, name: `sub-${at}` })),
    refusals: Array.from({ length: count }, (_, at) => ({ part: 'plan', reason: `limit-${at}`, count: at })),
  }
}

test('the view fits the screen, whatever its size and the amount of data', () => {
  for (const [columns, rows] of [
    [79, 24],
    [159, 50],
    [40, 10],
    [20, 5],
    [10, 2],
    [300, 100],
  ] as const) {
    for (const report of [makeReport(), many(0), many(200)]) {
      const lines = picture(columns, rows, report)
      assert.ok(lines.length <= rows, `${lines.length} lines on a screen of ${rows}`)
      for (const line of lines) assert.ok(stringWidth(line) <= columns, `"${line}" on a screen of ${columns}`)
    }
  }
})

test('80 by 24 shows every section', () => {
  const text = picture(79, 24).join('\n')
  for (const word of [
    '● ok',
    'up 1h2m',
    '200MiB',
    'rpc',
    'sender',
    'execution',
    'UPSTREAM',
    'healthy',
    'acme',
    'unitsPerSecond',
    'q to quit',
  ])
    assert.ok(text.includes(word), `${word} in:\n${text}`)
})

test('a wide screen shows subscriptions beside upstreams', () => {
  const lines = picture(159, 50)
  assert.ok(lines.some((line) => line.includes('UPSTREAM') && line.includes('SUBSCRIPTION')))
  const crowded = picture(159, 50, many(200)).join('\n')
  assert.match(crowded, /… \d+ more/)
})

test('problems come first, and control characters are replaced', () => {
  const report = makeReport()
  const reasons = [{ part: 'disk', reason: `full ${ESCAPE}[2J`, sinceMs: 0 }]
  const lines = picture(79, 24, { ...report, status: { ...report.status, state: 'degraded', reasons } })
  assert.match(lines[0] ?? '', /degraded/)
  assert.match(lines[2] ?? '', /! disk: full ·\[2J/)
  assert.ok(!lines.join('').includes(ESCAPE))
})

test('colours only on a terminal without NO_COLOR', () => {
  const stdout = { isTTY: true } as NodeJS.WriteStream & { fd: 1 }
  assert.equal(wantsColour({ env: {}, stdout }), true)
  assert.equal(wantsColour({ env: { NO_COLOR: '1' }, stdout }), false)
  assert.equal(wantsColour({ env: { TERM: 'dumb' }, stdout }), false)
  assert.equal(wantsColour({ env: {}, stdout: { isTTY: false } as typeof stdout }), false)
  const painted = paintLine([{ text: 'ok', tone: 'good' }], { width: 10, colour: true })
  assert.equal(painted, `${ESCAPE}[32mok${ESCAPE}[39m`)
})

test('lines are shared evenly, and no table gets more than it needs', () => {
  assert.deepEqual(share(20, [1, 1, 1]), [2, 2, 2])
  assert.deepEqual(share(12, [100, 1, 100]), [5, 2, 5])
  assert.deepEqual(share(3, [5, 5]), [2, 2], 'a title and a row at least; the picture is cut at its end')
})

test('figures keep their width', () => {
  assert.deepEqual([0, 0.04, 9.94, 10, 1234.4, 123_456, 98_765_432].map(printRate), [
    '0',
    '0.0',
    '9.9',
    '10',
    '1,234',
    '123k',
    '99M',
  ])
  assert.equal(printCount(99_999), '99,999')
  assert.equal(sparkline([0, 1, 8], 5), '  ▁▂█')
  assert.equal(sparkline([0, 0], 2), '▁▁')
})
