import { closeSync, fstatSync, fsyncSync, openSync, statSync, unlinkSync, writeSync } from 'node:fs'
import { ServiceError } from '../../core/error.ts'
import type { CliContext, SecretFlags } from '../define.ts'
import { write } from './print.ts'

/** Where a secret will be shown, decided before the secret is created. */
export type SecretLocation = Disposable & {
  /** Prints or writes the text with the secret. Called at most once, after the change is durable. */
  reveal(text: string): void
}

/**
 * A secret goes to a terminal, to a new file of mode 0600, or with `--print-token` to any standard output. Throws before the secret is created if it
 * could not be shown.
 */
export function secretLocation(context: CliContext, flags: SecretFlags): SecretLocation {
  if (flags.out !== undefined) return newSecretFile(context, flags.out)
  const { stdout } = context.process
  if (flags.dryRun !== true && isNowhere(stdout)) {
    throw new ServiceError('needs-terminal', 'the secret is shown once, and standard output is closed or /dev/null', {
      fix: 'Add --out FILE to write it to a new file of mode 0600.',
    })
  }
  if (flags.dryRun !== true && stdout.isTTY !== true && flags.printToken !== true) {
    throw new ServiceError('needs-terminal', 'the secret is shown once, and standard output is not a terminal')
  }
  return {
    reveal(text) {
      const { fd } = stdout as { fd?: number }
      if (fd === undefined) {
        stdout.write(text)
        return
      }
      reportLoss(() => writeWhole(fd, text))
    },
    [Symbol.dispose]() {},
  }
}

/** Runs what shows a secret. The change that made the secret is committed, so a failure is none of the change: only the secret is lost. */
function reportLoss(show: () => void): void {
  try {
    show()
  } catch (cause) {
    throw new ServiceError(
      'needs-terminal',
      `the secret was created but could not be shown: ${(cause as Error).message}`,
      {
        fix: 'It is lost. Create a new one with: sluice token rotate (or: sluice indexer rotate, sluice admin rotate)',
        cause,
      },
    )
  }
}

type WritePart = (fd: number, bytes: Buffer, offset: number) => number

/** Writes all of the text, synchronously, so that a failure is reported and the secret does not count as shown. */
export function writeWhole(fd: number, text: string, writePart: WritePart = writeSync): void {
  const bytes = Buffer.from(text)
  for (let offset = 0; offset < bytes.length; ) {
    const written = writePart(fd, bytes, offset)
    if (written === 0) throw new Error('the output takes no more bytes')
    offset += written
  }
}

/** Whether the output is discarded: /dev/null, which Node also opens for a closed standard output. */
function isNowhere(stdout: object): boolean {
  const { fd } = stdout as { fd?: number }
  if (fd === undefined) return false
  const [out, nowhere] = [fstatSync(fd), statSync('/dev/null')]
  return out.isCharacterDevice() && out.rdev === nowhere.rdev
}

function newSecretFile(context: CliContext, path: string): SecretLocation {
  let fd: number
  try {
    fd = openSync(path, 'wx', 0o600)
  } catch (cause) {
    const exists = (cause as NodeJS.ErrnoException).code === 'EEXIST'
    throw new ServiceError(
      exists ? 'already-exists' : 'invalid-value',
      exists ? `${path} already exists` : `${path} cannot be written`,
      {
        fix: 'Give --out the name of a new file in a folder that you can write to.',
        cause,
      },
    )
  }
  let revealed = false
  return {
    reveal(text) {
      reportLoss(() => {
        writeWhole(fd, text)
        fsyncSync(fd)
      })
      revealed = true
      write(context, `written to ${path} (mode 0600); it cannot be shown again`)
    },
    [Symbol.dispose]() {
      closeSync(fd)
      if (!revealed) unlinkSync(path)
    },
  }
}
