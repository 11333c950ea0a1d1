import { createPrivateKey, X509Certificate } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import type { Clock, Timer } from '../../core/clock.ts'
import { messageOf, ServiceError } from '../../core/error.ts'
import { DAY_MS } from '../../core/human-units.ts'
import { checkSecretFile } from '../files/state-folder.ts'
import type { Logger } from '../telemetry/logger.ts'

export type TlsFiles = { cert: string; key: string }

/** A certificate with its key, in PEM, and the oldest protocol version. */
export type TlsPair = { cert: string; key: string; minVersion: typeof TLS_MIN_VERSION }

export type TlsFilesDeps = {
  log: Logger
  clock: Clock
  /** New files were loaded. */
  onPair(pair: TlsPair): void
  /** When the certificate in use expires, and why the files that are there now cannot be used instead; called at start and after each change. */
  onNotAfter?: ((notAfterMs: number, failure?: string) => void) | undefined
}

export type TlsFilesOptions = {
  /** How often the files are read where the file system does not notify changes. */
  pollMs?: number
  /** How long the files must be unchanged before they are read: a renewal writes two of them. */
  settleMs?: number
}

/** The cipher list is the runtime's default. */
const TLS_MIN_VERSION = 'TLSv1.2' as const satisfies SecureContextOptions['minVersion']

const POLL_MS = 30_000
const SETTLE_MS = 200
/** Days before its expiry at which a certificate is logged, once each; 0 when it has expired. */
const WARN_DAYS = [21, 7, 1, 0] as const

type Loaded = { text: string; pair: TlsPair; notAfterMs: number }

/**
 * Certificate and key from files, reloaded when they change. When files do not load (half written, not a pair, wrong mode), the error is logged and the
 * certificate in use stays.
 */
export async function openTlsFiles(
  files: TlsFiles,
  deps: TlsFilesDeps,
  options: TlsFilesOptions = {},
): Promise<{ readonly pair: TlsPair } & AsyncDisposable> {
  const { log, clock } = deps
  const { pollMs = POLL_MS, settleMs = SETTLE_MS } = options
  let current = await load(files)
  let failedText: string | undefined
  let settling: Timer | undefined
  let reading: Promise<void> = Promise.resolve()
  let closed = false
  let warnedDays = Number.POSITIVE_INFINITY

  function announce(): void {
    deps.onNotAfter?.(current.notAfterMs)
    warnedDays = Number.POSITIVE_INFINITY
    warnOfExpiry()
  }

  function warnOfExpiry(): void {
    const daysLeft = (current.notAfterMs - clock.nowMs()) / DAY_MS
    const crossed = WARN_DAYS.findLast((days) => daysLeft <= days)
    if (crossed === undefined || crossed >= warnedDays) return
    warnedDays = crossed
    const fields = { cert: files.cert, notAfter: new Date(current.notAfterMs).toISOString() }
    if (daysLeft <= 0) log.error(fields, 'certificate has expired')
    else log.warn({ ...fields, daysLeft: Math.ceil(daysLeft) }, 'certificate expires soon')
  }

  async function reload(): Promise<void> {
    if (closed) return
    let text = ''
    try {
      text = await readBoth(files)
      if (text === current.text) {
        if (failedText !== undefined) deps.onNotAfter?.(current.notAfterMs)
        failedText = undefined
        return
      }
      current = await load(files)
      failedText = undefined
      if (closed) return
      deps.onPair(current.pair)
      log.info({ cert: files.cert, notAfter: new Date(current.notAfterMs).toISOString() }, 'certificate reloaded')
      announce()
    } catch (error) {
      // Compared by content, so that polling a bad file logs it once.
      if (text !== '' && text === failedText) return
      failedText = text
      log.error({ err: error, cert: files.cert }, 'new certificate not loaded, the old one stays in use')
      deps.onNotAfter?.(current.notAfterMs, messageOf(error))
    }
  }

  function changed(): void {
    settling?.cancel()
    if (closed) return
    settling = clock.setTimer(settleMs, () => {
      reading = reading.then(reload)
    })
    settling.unref?.()
  }

  const watchers = watchFolders(files, changed, log)
  const poll = clock.setRepeating(pollMs, () => {
    warnOfExpiry()
    reading = reading.then(reload)
  })
  poll.unref?.()
  announce()

  return {
    get pair() {
      return current.pair
    },
    async [Symbol.asyncDispose]() {
      closed = true
      settling?.cancel()
      poll.cancel()
      for (const watcher of watchers) watcher.close()
      await reading
    },
  }
}

/** Watches the folders, not the files: a renewal often replaces the file, or a symbolic link to it. */
function watchFolders(files: TlsFiles, changed: () => void, log: Logger): FSWatcher[] {
  const watchers: FSWatcher[] = []
  for (const folder of new Set([dirname(files.cert), dirname(files.key)])) {
    try {
      const watcher = watch(folder, { persistent: false }, changed)
      watcher.on('error', () => watcher.close())
      watchers.push(watcher)
    } catch (error) {
      log.warn({ err: error, folder }, 'certificate folder cannot be watched, changes are found by polling')
    }
  }
  return watchers
}

async function readBoth(files: TlsFiles): Promise<string> {
  const [cert, key] = await Promise.all([readFile(files.cert, 'utf8'), readFile(files.key, 'utf8')])
  return `${cert}\n${key}`
}

/** Throws what `openTlsFiles` would throw. */
export async function checkTlsFiles(files: TlsFiles): Promise<void> {
  await load(files)
}

async function load(files: TlsFiles): Promise<Loaded> {
  const cert = await readPart('cert', files.cert)
  await checkSecretFile(files.key)
  const key = await readPart('key', files.key)
  try {
    const leaf = new X509Certificate(cert)
    if (!leaf.checkPrivateKey(createPrivateKey(key))) throw new Error('the key does not belong to the certificate')
    const pair: TlsPair = { cert, key, minVersion: TLS_MIN_VERSION }
    // A check only: each server makes its own context from the pair.
    createSecureContext(pair)
    return { text: `${cert}\n${key}`, pair, notAfterMs: leaf.validToDate.getTime() }
  } catch (error) {
    throw new ServiceError('tls-invalid', `certificate ${files.cert} with key ${files.key}: ${messageOf(error)}`, {
      fields: { cert: files.cert, key: files.key },
      fix: 'Give a PEM certificate (leaf first, then its chain) and the private key it was made for.',
      cause: error,
    })
  }
}

async function readPart(part: 'cert' | 'key', path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new ServiceError('tls-invalid', `tls.${part} cannot be read: ${messageOf(error)}`, {
      fields: { path },
      fix: `Check that ${path} exists and that the service user may read it.`,
      cause: error,
    })
  }
}
