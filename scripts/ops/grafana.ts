import type { Board, Panel } from './board.ts'

const COLUMNS = 24
const PER_ROW = 3
const HEIGHT = 8
const SOURCE = { type: 'prometheus', uid: '${datasource}' }

/** The JSON that Grafana imports (schema version 39, Grafana 11 and later). Ids and positions follow from the order, so that diffs stay small. */
export function grafanaJson({ uid, title, processes, rows }: Board): string {
  const panels: object[] = []
  let y = 0
  for (const row of rows) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title: row.title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: COLUMNS, h: 1 },
    })
    y += 1
    row.panels.forEach((panel, at) => {
      const w = COLUMNS / PER_ROW
      const gridPos = { x: (at % PER_ROW) * w, y: y + Math.floor(at / PER_ROW) * HEIGHT, w, h: HEIGHT }
      panels.push({ id: panels.length + 1, ...panelJson(panel), gridPos })
    })
    y += Math.ceil(row.panels.length / PER_ROW) * HEIGHT
  }
  const board = {
    uid,
    title,
    tags: ['sluice'],
    timezone: 'utc',
    schemaVersion: 39,
    version: 1,
    editable: true,
    refresh: '10s',
    time: { from: 'now-1h', to: 'now' },
    templating: { list: variables(processes) },
    annotations: { list: [] },
    panels,
  }
  return `${JSON.stringify(board, null, 2)}\n`
}

const variables = (processes: string) => [
  { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' },
  {
    name: 'instance',
    type: 'query',
    label: 'Process',
    datasource: SOURCE,
    query: { query: `label_values(${processes}, instance)`, refId: 'instance' },
    refresh: 2,
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: { text: 'All', value: '$__all' },
  },
]

function panelJson({ title, how, unit, kind = 'lines', queries }: Panel): object {
  const targets = queries.map(({ expr, legend }, at) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + at),
    datasource: SOURCE,
    expr,
    legendFormat: legend,
  }))
  const isStat = kind === 'stat'
  return {
    type: isStat ? 'stat' : 'timeseries',
    title,
    description: how,
    datasource: SOURCE,
    targets,
    fieldConfig: {
      defaults: { unit, min: unit === 'dateTimeFromNow' ? undefined : 0, custom: isStat ? undefined : LINES },
      overrides: [],
    },
    options: isStat
      ? { reduceOptions: { calcs: ['lastNotNull'] }, colorMode: 'none', graphMode: 'area' }
      : { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
  }
}

const LINES = { lineWidth: 1, fillOpacity: 8, showPoints: 'never', spanNulls: false }
