import { closeSync, fstatSync, fsyncSync, openSync, statSync, unlinkSync, writeSync } from 'node:fs'
import { ServiceError } from '../../core/error.ts'
import type { CliContext, SecretFlags } from '../define.ts'
import { write } from './print.ts'

/** A place that will take a secret, settled before the secret exists. */
export type SecretLocation = Disposable & {
  /** Prints or writes the text that holds the secret. Called at most once, after the change is durable. */
  reveal(text: string): void
}

/**
 * Secrets go to a terminal, to a new file of mode 0600, or, when the operator insists, to wherever standard output leads. Asked first, so that no
 * secret is made that could then not be shown.
 */
export function secretLocation(context: CliContext, flags: SecretFlags): SecretLocation {
  if (flags.out !== undefined) return newSecretFile(context, flags.out)
  const { stdout } = context.process
  if (flags.dryRun !== true && isNowhere(stdout)) {
    throw new ServiceError('needs-terminal', 'the secret is shown once and standard output leads nowhere', {
      fix: 'Add --out FILE to write it to a new file of mode 0600.',
    })
  }
  if (flags.dryRun !== true && stdout.isTTY !== true && flags.printToken !== true) {
    throw new ServiceError('needs-terminal', 'the secret is shown once and standard output is not a terminal')
  }
  return {
    reveal(text) {
      const { fd } = stdout as { fd?: number }
      if (fd === undefined) {
        stdout.write(text)
        return
      }
      try {
        // At once and by its result: a secret that could not be shown must not pass for shown.
        writeSync(fd, text)
      } catch (cause) {
        throw new ServiceError(
          'needs-terminal',
          `the secret was made and could not be shown: ${(cause as Error).message}`,
          {
            fix: 'It is lost; make a new one with: sluice token rotate (or: sluice indexer rotate)',
            cause,
          },
        )
      }
    },
    [Symbol.dispose]() {},
  }
}

/** Whether what is written vanishes: /dev/null, which also stands in for a closed standard output. */
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
      exists ? `${path} exists already` : `${path} cannot be written`,
      {
        fix: 'Give --out the name of a new file in a folder you may write.',
        cause,
      },
    )
  }
  let revealed = false
  return {
    reveal(text) {
      writeSync(fd, text)
      fsyncSync(fd)
      revealed = true
      write(context, `written to ${path} (mode 0600); it cannot be shown again`)
    },
    [Symbol.dispose]() {
      closeSync(fd)
      if (!revealed) unlinkSync(path)
    },
  }
}
