import { BUILT } from '../../src/apps/build.ts'
import { PRODUCTS } from '../../src/contract/products.ts'
import { GENERATED, table } from './markdown.ts'

export function apiPage(): string {
  return `${[
    '# Interfaces',
    GENERATED,
    '## Products',
    table(
      ['key', 'product', 'authorization', 'in this build'],
      Object.entries(PRODUCTS).map(([key, { title, authorization, available }]) => [
        `\`${key}\``,
        title,
        authorization,
        available ? (BUILT[key as keyof typeof BUILT] ? 'yes' : 'not yet') : 'coming soon',
      ]),
    ),
    '## Operator metrics listener',
    table(
      ['method', 'path', 'answer'],
      [
        [
          'GET',
          '/metrics',
          'Prometheus text, or OpenMetrics where the Accept header asks for it; see [metrics.md](metrics.md)',
        ],
        ['GET', '/healthz', '200 while the process lives: `state`, `ready`, `uptime_seconds`, `reasons`'],
        ['GET', '/readyz', 'the same body; 200 when work may be sent here, 503 while starting and draining'],
      ],
    ),
    '## Errors',
    'Every error Sluice makes is in [errors.md](errors.md), with its status on each protocol.',
  ].join('\n\n')}\n`
}
