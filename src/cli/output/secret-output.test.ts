import assert from 'node:assert/strict'
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { test } from 'node:test'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import type { CliContext } from '../define.ts'
import { secretLocation, writeWhole } from './secret-output.ts'

const TEXT = 'slc_secret\n'

function openContext() {
  let written = ''
  const context = { process: { stdout: {}, stderr: { write: (text: string) => (written += text) } } }
  return { context: context as unknown as CliContext, written: () => written }
}

/** The descriptor of this process with which the file is open. */
function fdOf(file: string): number {
  const isOpen = (fd: string) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === file
    } catch {
      return false
    }
  }
  return Number(readdirSync('/proc/self/fd').find(isOpen))
}

test('a secret is written to a new file', () => {
  using folder = makeTestFolder()
  const { context, written } = openContext()
  const out = folder.file('token')
  {
    using location = secretLocation(context, { out })
    location.reveal(TEXT)
  }
  assert.equal(readFileSync(out, 'utf8'), TEXT)
  assert.match(written(), /^written to /)
})

test('a secret that does not fit on the disk is reported as created and lost, and no part of it stays', () => {
  using folder = makeTestFolder()
  const { context, written } = openContext()
  const out = folder.file('token')
  {
    using location = secretLocation(context, { out })
    const fd = fdOf(out)
    closeSync(fd)
    assert.equal(openSync('/dev/full', 'w'), fd, 'the descriptor of the file is now that of a full disk')
    assert.throws(() => location.reveal(TEXT), {
      code: 'needs-terminal',
      message: /^the secret was created but could not be shown: ENOSPC/,
      fix: /rotate/,
    })
  }
  assert.deepEqual([existsSync(out), written()], [false, ''])
})

test('a secret that is taken in parts is written to its end', () => {
  let taken = ''
  writeWhole(7, 'né-secret', (fd, bytes, offset) => {
    assert.equal(fd, 7)
    const part = bytes.subarray(offset, offset + 2)
    taken += part.toString('latin1')
    return part.length
  })
  assert.equal(Buffer.from(taken, 'latin1').toString(), 'né-secret')
})
