import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { listenAddress } from '../../../contract/listen-address.ts'
import { ServiceError } from '../../../core/error.ts'
import { DAY_MS } from '../../../core/human-units.ts'
import { isInstanceLocked } from '../../../platform/files/instance-lock.ts'
import { checkSecretFile } from '../../../platform/files/state-folder.ts'
import { isLoopbackAddress } from '../../../platform/net/connection-caps.ts'
import { checkTlsFiles } from '../../../platform/net/tls-files.ts'
import { systemClock } from '../../../platform/process/clock.ts'
import { endpointsOf } from '../access/endpoints.ts'
import type { Config, ConfigSection } from './config.ts'
import { bad, type Finding, ok, warn } from './finding.ts'
import { servedSections } from './served.ts'

const CERTIFICATE_WARN_DAYS = 21
const CONNECT_MS_MAX = 2000

export type Server = { readonly name: string; readonly option: Config['bundle']['rpc'] }

/** How a port is tried. */
type Ports = {
  /** Listens there for a moment; the code of the error, or undefined. */
  readonly open: (host: string, port: number) => Promise<string | undefined>
  /** Whether a connection is accepted there. */
  readonly isListening: (host: string, port: number) => Promise<boolean>
}

/** Checks each TCP listener: public address, port, certificate. */
export async function checkListeners(
  config: Config,
  {
    folder,
    stateDir,
    sections = servedSections(config),
  }: { readonly folder: string; readonly stateDir: string; readonly sections?: readonly ConfigSection[] },
  ports: Partial<Ports> = {},
): Promise<Finding[]> {
  const running = isRunning(stateDir)
  const findings = await checkListenerFiles(config, folder, sections)
  for (const server of listenersOf(config, sections))
    findings.push(await checkPort(server, running, { ...SYSTEM_PORTS, ...ports }))
  findings.push(checkMetricsOpen(config))
  return findings
}

/** The checks that open no port. */
export async function checkListenerFiles(
  config: Config,
  folder: string,
  sections: readonly ConfigSection[] = servedSections(config),
): Promise<Finding[]> {
  const servers = listenersOf(config, sections)
  const findings: Finding[] = servers.map(checkPublic)
  for (const certificate of certificatesOf(servers, folder)) findings.push(await checkCertificate(certificate))
  return [...findings, ...findShared(servers), ...checkPublicUrls(config), ...checkProxies(config, servers)]
}

type Certificate = { readonly names: string[]; readonly cert: string; readonly key: string }

/** Each pair of certificate and key once, with the listeners that use it. */
function certificatesOf(servers: readonly Server[], folder: string): Certificate[] {
  const certificates: Certificate[] = []
  for (const { name, option } of servers) {
    if (option.tls === undefined) continue
    const [cert, key] = [resolve(folder, option.tls.cert), resolve(folder, option.tls.key)]
    const known = certificates.find((other) => other.cert === cert && other.key === key)
    if (known === undefined) certificates.push({ names: [name], cert, key })
    else known.names.push(name)
  }
  return certificates
}

/** A public listener without a public address: cards, tickets and errors then have no URL of it. */
function checkPublicUrls(config: Config): Finding[] {
  return endpointsOf(config)
    .missing.filter(({ isConfigured }) => !isConfigured)
    .map(({ key }) =>
      warn(
        'public address',
        `no ${key}: handover cards, tickets and errors name no address of this service`,
        `set ${key} to the address that customers use`,
      ),
    )
}

/** A service behind a proxy that it does not trust takes the address of the proxy for that of every client. */
function checkProxies(config: Config, servers: readonly Server[]): Finding[] {
  const behind = servers.filter(({ option }) => option.plaintext === 'behind-proxy')
  return [...new Set(behind.map(({ name }) => name.split('.')[0] as ConfigSection))].flatMap((section) => {
    const { trustedProxies } = config[section] as { readonly trustedProxies?: readonly string[] }
    if (trustedProxies === undefined || trustedProxies.length > 0) return []
    const key = `${section}.trustedProxies`
    const message = `${section} is behind a proxy and ${key} is empty: all clients share the limits of one address`
    return [warn('proxy', message, `set ${key} to the addresses of the proxy`)]
  })
}

/** Two listeners cannot share a port unless their addresses differ. Port 0 picks a free port for each. */
export function findShared(servers: readonly Server[]): Finding[] {
  const findings: Finding[] = []
  servers.forEach((server, at) => {
    const { host, port } = listenAddress(server.option)
    const other = servers.slice(0, at).find(({ option }) => {
      const taken = listenAddress(option)
      return (
        port !== 0 && taken.port === port && (taken.host === host || isEveryAddress(host) || isEveryAddress(taken.host))
      )
    })
    if (other === undefined) return
    const [first, second] = [`${other.name}.listen`, `${server.name}.listen`]
    findings.push(
      bad(
        'listener',
        `${first} and ${second} have the same port: ${other.option.listen} and ${server.option.listen}`,
        `set ${second} to another port`,
      ),
    )
  })
  return findings
}

function isEveryAddress(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

/** The TCP listeners of these sections of the configuration. */
export function listenersOf(config: Config, sections: readonly ConfigSection[] = servedSections(config)): Server[] {
  const { metrics, bundle, sender, execution, indexer, admin } = config
  const servers: Partial<Record<ConfigSection, Server[]>> = {
    metrics: [{ name: 'metrics', option: metrics }],
    bundle: [
      { name: 'bundle.rpc', option: bundle.rpc },
      { name: 'bundle.ws', option: bundle.ws },
      { name: 'bundle.grpc', option: bundle.grpc },
      ...(bundle.entries.enabled ? [{ name: 'bundle.entries', option: bundle.entries }] : []),
    ],
    sender: [{ name: 'sender', option: sender }],
    execution: [{ name: 'execution', option: execution }],
    indexer: [{ name: 'indexer', option: indexer }],
    admin: [{ name: 'admin', option: admin }],
  }
  return sections.flatMap((section) => servers[section] ?? [])
}

function checkPublic({ name, option }: Server): Finding {
  const { host } = listenAddress(option)
  if (isLoopbackHost(host) || option.tls !== undefined || option.plaintext === 'behind-proxy')
    return ok('listener', `${name} on ${option.listen}`)
  return bad(
    'listener',
    `${name} listens on the public address ${option.listen} without TLS`,
    `set ${name}.tls = { cert = "…", key = "…" }, or ${name}.plaintext = "behind-proxy" if a proxy terminates TLS`,
  )
}

function checkMetricsOpen({ metrics }: Config): Finding {
  const { host } = listenAddress(metrics)
  if (isLoopbackHost(host) || metrics.bearer !== undefined)
    return ok('metrics', metrics.bearer === undefined ? 'loopback only' : 'requires its bearer secret')
  return bad(
    'metrics',
    `operator metrics are open to everyone on ${metrics.listen}`,
    'set metrics.listen = "127.0.0.1:9464", or metrics.bearer = "file:PATH"',
  )
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g
/** Longer files are bundles of authorities. */
const CHAIN_MAX = 16

async function checkCertificate({ names, cert, key }: Certificate): Promise<Finding> {
  const name = names.join(', ')
  const settings = (ending: string) => names.map((each) => `${each}.${ending}`).join(', ')
  try {
    const text = await readFile(cert)
    const certificate = new X509Certificate(text)
    const chain = text.toString('latin1').match(PEM_CERTIFICATE)?.slice(1, CHAIN_MAX) ?? []
    await checkSecretFile(key)
    const privateKey = createPrivateKey(await readFile(key))
    if (certificate.checkPrivateKey(privateKey)) {
      // What only the start of a server finds: a key that is too short, a damaged chain.
      await checkTlsFiles({ cert, key })
      return checkDays(name, cert, certificate)
    }
    if (chain.some((text) => new X509Certificate(text).checkPrivateKey(privateKey)))
      return bad(
        'certificate',
        `${name}: the certificate of ${key} is in ${cert}, but not as the first`,
        `put it first in ${cert}, then the certificates that sign it`,
      )
    return bad(
      'certificate',
      `${name}: ${key} is not the key of ${cert}`,
      `openssl x509 -in ${cert} -noout -pubkey   # compare, then set ${settings('tls.key')}`,
    )
  } catch (error) {
    if (error instanceof ServiceError)
      return bad('certificate', `${name}: ${error.message}`, error.fix ?? `chmod 600 ${key}`)
    const reason = (error as Error).message.split('\n')[0] ?? ''
    return bad(
      'certificate',
      `${name}: certificate or key cannot be read: ${reason}`,
      `openssl x509 -in ${cert} -noout -dates   # then set ${settings('tls')}`,
    )
  }
}

function checkDays(name: string, path: string, certificate: X509Certificate): Finding {
  const days = Math.floor((certificate.validToDate.getTime() - systemClock.nowMs()) / DAY_MS)
  const renew = `renew ${path}; it is reloaded automatically`
  if (days < 0) return bad('certificate', `${name}: ${path} has expired`, renew)
  if (certificate.validFromDate.getTime() > systemClock.nowMs())
    return bad('certificate', `${name}: ${path} is not valid yet`, 'timedatectl set-ntp true')
  if (days < CERTIFICATE_WARN_DAYS) return warn('certificate', `${name}: ${path} expires in ${days} days`, renew)
  return ok('certificate', `${name}: ${days} days left`)
}

async function checkPort({ name, option }: Server, running: boolean, ports: Ports): Promise<Finding> {
  const { host, port } = listenAddress(option)
  const code = await ports.open(host, port)
  // A port below 1024 needs a capability that the unit has and this command has not: the kernel refuses it before it looks who listens there.
  const isInUse = running && (code === 'EADDRINUSE' || (code === 'EACCES' && (await ports.isListening(host, port))))
  if (code === undefined || isInUse)
    return ok('port', `${option.listen} is ${code === undefined ? 'free' : 'in use by Sluice'}`)
  if (code === 'EADDRINUSE')
    return bad(
      'port',
      `${name}: ${option.listen} is in use by another process`,
      `ss -lntup 'sport = :${port}'   # then stop it, or change ${name}.listen`,
    )
  if (code === 'EACCES')
    return bad(
      'port',
      `${name}: this user has no permission to listen on ${option.listen}`,
      `give the unit the capability: ops/systemd/port-443.conf; or change ${name}.listen to a port above 1023`,
    )
  return bad(
    'port',
    `${name}: ${option.listen} is not an address of this machine (${code})`,
    `ip addr   # then set ${name}.listen to an address listed`,
  )
}

/** Throws for the addresses of a reloaded configuration that this process could not listen on after a restart. Ports that it has itself are free then. */
export async function assertNewPortsFree(present: readonly Server[], next: readonly Server[]): Promise<void> {
  const own = present.map(({ option }) => option)
  const faults: (Finding & { level: 'bad' })[] = []
  for (const server of next) {
    if (own.some(({ listen }) => listen === server.option.listen)) continue
    const { port } = listenAddress(server.option)
    const isOwnPort = own.some((option) => listenAddress(option).port === port)
    const finding = await checkPort(server, isOwnPort, SYSTEM_PORTS)
    if (finding.level === 'bad') faults.push({ ...finding, level: 'bad' })
  }
  if (faults.length === 0) return
  throw new ServiceError('config-invalid', faults.map(({ message }) => message).join('\n'), {
    fix: faults.map(({ fix }) => fix).join('\n       '),
  })
}

function openForMoment(host: string, port: number): Promise<string | undefined> {
  return new Promise((done) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => done(error.code ?? 'error'))
    server.listen({ host, port, exclusive: true }, () => server.close(() => done(undefined)))
  })
}

function isListening(host: string, port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ host: isEveryAddress(host) ? 'localhost' : host, port, timeout: CONNECT_MS_MAX })
    const end = (isAccepted: boolean) => () => {
      socket.destroy()
      done(isAccepted)
    }
    socket.once('connect', end(true)).once('timeout', end(false)).once('error', end(false))
  })
}

const SYSTEM_PORTS: Ports = { open: openForMoment, isListening }

function isRunning(stateDir: string): boolean {
  return existsSync(stateDir) && isInstanceLocked({ path: stateDir, file: (...parts) => join(stateDir, ...parts) })
}

function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || isLoopbackAddress(host)
}
