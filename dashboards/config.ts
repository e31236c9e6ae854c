/*
 * Every number and colour of the boards that someone may want to change, in one table: change it
 * here, run `npm run dashboards`, commit both. Panels and queries hold no such constants of their
 * own. Shares are 0 to 1, times are in seconds unless the name says otherwise.
 */
export const config = {
  /**
   * The range a board opens with: long enough to see when a decline began, short enough to see
   * it.
   */
  timeFrom: 'now-1h',
  timeTo: 'now',

  /**
   * How often a board asks again. Twice the scrape interval: a faster one would redraw the same
   * samples.
   */
  refresh: '30s',

  /** How often the bundled Prometheus scrapes; the provisioned data source must say the same. */
  scrapeInterval: '15s',

  /**
   * Share of judged requests that are declined: up to this a few greedy clients, normal at any
   * hour.
   */
  declinedShareWarning: 0.01,
  /** From here so many are declined that ordinary clients must be among them. */
  declinedShareCritical: 0.1,

  /**
   * Declines per second from which a figure turns red: one in a quarter of an hour, so any at
   * all.
   */
  declinesPerSecond: 0.001,

  /** Utilization from which a rule is near its limit: the default of a rule's own `near`. */
  utilizationNear: 0.8,
  /** Utilization at which a rule declines: a sliding window seldom comes to 1 exactly. */
  utilizationFull: 0.99,

  /**
   * Least heights of axes: without them Grafana stretches a healthy wobble over the whole panel,
   * and puts an axis of 100 behind a line of zeros.
   */
  axisLeast: {
    perSecond: 1,
    keys: 10,
    latencySeconds: 0.1,
    flushSeconds: 0.01,
    pendingCount: 100,
    /** At this much lag of the event loop every answer feels late. */
    eventLoopLagSeconds: 0.1,
  },

  /** How many routes the list of slow ones names. */
  slowestRoutes: 8,

  /** One colour for one meaning, on every panel. */
  colours: {
    allowed: 'green',
    declined: 'red',
    exempt: 'blue',
    near: 'orange',
    within: 'green',
    failed: 'purple',
    /** Times: what half of the clients see, and what the slowest in a hundred see. */
    typical: 'light-blue',
    slowest: 'semi-dark-blue',
    /**
     * A figure that is neither good nor bad. `text` is Grafana's own text colour, in either
     * theme.
     */
    neutral: 'text',
  },

  /**
   * Lines of the rules that ship, in colours that stand for no outcome. Rules of other names get
   * one of Grafana's own by their name, the same on every panel.
   */
  ruleColours: {
    global: '#9C7BE8',
    ip: '#35A7D8',
    session: '#D9669F',
    'parse-url': '#8C97A6',
  },
} as const
