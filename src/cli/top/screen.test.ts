import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { openScreen } from './screen.ts'

class Stream extends EventEmitter {
  isTTY = true
  columns = 80
  rows = 24
  text = ''
  modes: boolean[] = []
  write(text: string): boolean {
    this.text += text
    return true
  }
  setRawMode(mode: boolean): void {
    this.modes.push(mode)
  }
  resume(): this {
    return this
  }
  pause(): this {
    return this
  }
  taken(): string {
    const { text } = this
    this.text = ''
    return text
  }
}

function open() {
  const stdout = new Stream()
  const stdin = new Stream()
  const fake = Object.assign(new EventEmitter(), { stdout, stdin, pid: 1, kill() {} })
  return { fake, stdout, stdin, screen: openScreen(fake as unknown as NodeJS.Process) }
}

const ESCAPE = String.fromCharCode(27)
const isRestored = (text: string) => text.includes(`${ESCAPE}[?25h`) && text.includes(`${ESCAPE}[?1049l`)

test('only lines that changed are written', () => {
  const { stdout, screen } = open()
  stdout.taken()
  screen.draw(['one', 'two'])
  const first = stdout.taken()
  assert.ok(first.includes('one') && first.includes('two'))
  screen.draw(['one', 'three'])
  const second = stdout.taken()
  assert.ok(!second.includes('one') && second.includes(`${ESCAPE}[2;1Hthree`))
  screen.draw(['one', 'three'])
  assert.equal(stdout.taken(), '', 'a quiet second writes nothing')
  screen.draw(['one'])
  assert.ok(stdout.taken().includes(`${ESCAPE}[2;1H${ESCAPE}[K`), 'a line that is gone is cleared')
  screen[Symbol.dispose]()
})

test('q, Ctrl-C and signals quit; other keys do not', async () => {
  for (const key of ['q', '\u0003']) {
    const { stdin, screen } = open()
    let hasLeft = false
    void screen.left.then(() => (hasLeft = true))
    for (const other of ['x', `${ESCAPE}[A`, ' ']) stdin.emit('data', Buffer.from(other))
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(hasLeft, false)
    stdin.emit('data', Buffer.from(key))
    await screen.left
    screen[Symbol.dispose]()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    const { fake, screen } = open()
    fake.emit(signal)
    await screen.left
    screen[Symbol.dispose]()
  }
})

test('restores the terminal once, also on an unexpected exit', () => {
  const ordered = open()
  ordered.stdout.taken()
  ordered.screen[Symbol.dispose]()
  assert.ok(isRestored(ordered.stdout.taken()))
  assert.deepEqual(ordered.stdin.modes, [true, false])
  ordered.screen[Symbol.dispose]()
  assert.equal(ordered.stdout.taken(), '')
  assert.equal(ordered.fake.listenerCount('exit') + ordered.fake.listenerCount('SIGINT'), 0)

  const sudden = open()
  sudden.stdout.taken()
  sudden.fake.emit('exit')
  assert.ok(isRestored(sudden.stdout.taken()))
})

test('redraws everything after a resize', () => {
  const { stdout, screen } = open()
  let drawn = 0
  screen.onResize(() => (drawn += 1))
  screen.draw(['same'])
  stdout.taken()
  stdout.columns = 160
  stdout.emit('resize')
  assert.equal(drawn, 1)
  assert.equal(screen.columns, 159)
  screen.draw(['same'])
  assert.ok(stdout.taken().includes('same'))
  screen[Symbol.dispose]()
})

test('Ctrl-Z restores the terminal until the process continues', () => {
  const { fake, stdin, stdout, screen } = open()
  stdout.taken()
  stdin.emit('data', Buffer.from('\u001a'))
  assert.ok(isRestored(stdout.taken()))
  fake.emit('SIGCONT')
  assert.ok(stdout.taken().includes(`${ESCAPE}[?1049h`))
  screen[Symbol.dispose]()
})
