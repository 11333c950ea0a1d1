import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { useTheme } from './theme-button.tsx'

export type Colours = {
  readonly line: string
  readonly fill: string
  readonly grid: string
  readonly dim: string
  readonly text: string
  readonly panel: string
  readonly link: string
  readonly heat: readonly string[]
  /** From no contended slot to all slots contended. */
  readonly node: readonly string[]
}

const HEAT_STEPS = 6
const NODE_STEPS = 5

/** Colours for canvases, read from the style sheet. */
export function colours(): Colours {
  const style = getComputedStyle(document.documentElement)
  const read = (name: string): string => style.getPropertyValue(`--${name}`).trim()
  return {
    line: read('line'),
    fill: read('line-fill'),
    grid: read('grid'),
    dim: read('dim'),
    text: read('text'),
    panel: read('panel'),
    link: read('link'),
    heat: Array.from({ length: HEAT_STEPS }, (_, step) => read(`heat-${step}`)),
    node: Array.from({ length: NODE_STEPS }, (_, step) => read(`node-${step + 1}`)),
  }
}

/** Changes with the theme, so that canvases are painted again. */
export function useColours(): number {
  const theme = useTheme()
  const moved = useSignal(0)
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)')
    const move = () => (moved.value += 1)
    dark.addEventListener('change', move)
    return () => dark.removeEventListener('change', move)
  }, [])
  useEffect(() => {
    moved.value += 1
  }, [theme.value])
  return moved.value
}
