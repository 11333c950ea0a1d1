import { readlinkSync } from 'node:fs'
import { userInfo } from 'node:os'
import type { Actor } from '../../../access/store/model.ts'
import type { BaseDeps } from '../../../platform/process/base-deps.ts'
import type { LogTap } from '../../../platform/telemetry/log-tap.ts'
import type { Settings } from '../config/settings.ts'

/** Dependencies of every service. */
export type Deps = BaseDeps & {
  readonly env: NodeJS.ProcessEnv
  /** The log as a stream, for `sluice logs tail`. */
  readonly logTap?: LogTap
  /** Aborted by a signal during the start, which then ends at its next step. */
  readonly starting?: AbortSignal
}

/** Those of a process that can reload its configuration. */
export type ReloadingDeps = Deps & {
  /** Reads flags, environment and file again. */
  readonly readSettings: () => Promise<Settings>
}

/** The operator of this process, for the audit log. */
export function currentActor(env: NodeJS.ProcessEnv): Actor {
  const { uid, username } = userInfo()
  return { uid, user: username, sudoUser: env['SUDO_USER'] ?? null, tty: terminalName() }
}

function terminalName(): string | null {
  try {
    const name = readlinkSync('/proc/self/fd/0')
    return /^\/dev\/(pts\/|tty)/.test(name) ? name : null
  } catch {
    return null
  }
}
