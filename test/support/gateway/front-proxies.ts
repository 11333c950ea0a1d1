import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findInPath } from '../../../scripts/needs.ts'
import { until } from '../../../src/platform/process/test-wait.ts'
import { freePort } from '../machine/free-ports.ts'

/** A real proxy in front of the gateway: nginx or haproxy from Debian, with few upstream connections that many clients share. */
export type FrontProxy = AsyncDisposable & { readonly port: number }

const nginxConfig = (folder: string, port: number, gatewayPort: number) => `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log /dev/null crit;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  upstream gateway { server 127.0.0.1:${gatewayPort}; keepalive 1; }
  server {
    listen 127.0.0.1:${port};
    location / {
      if ($args ~ stolen) { return 403; }
      proxy_pass http://gateway;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_request_buffering off;
    }
  }
}
`

const haproxyConfig = (port: number, gatewayPort: number) => `
global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  option http-keep-alive
  http-reuse always
frontend front
  bind 127.0.0.1:${port}
  http-request deny if { query -m sub stolen }
  default_backend gateway
backend gateway
  server gateway 127.0.0.1:${gatewayPort}
`

export async function startFrontProxy(kind: 'nginx' | 'haproxy', gatewayPort: number): Promise<FrontProxy> {
  await using opening = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'sluice-front-'))
  opening.defer(() => rm(folder, { recursive: true, force: true }))
  const port = await freePort()
  const file = join(folder, 'config')
  await writeFile(file, kind === 'nginx' ? nginxConfig(folder, port, gatewayPort) : haproxyConfig(port, gatewayPort))
  const child = spawn(findInPath(kind) ?? kind, kind === 'nginx' ? ['-c', file] : ['-db', '-f', file], {
    stdio: 'ignore',
  })
  const exited = once(child, 'exit')
  opening.defer(async () => {
    child.kill('SIGTERM')
    await exited
  })
  await until(`${kind} listens`, () => isListening(port))
  const opened = opening.move()
  return { port, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
