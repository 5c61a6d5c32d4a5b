"""Shapes whose mending or joining would take all memory are refused before, in little time; others are not."""

import numpy as np
import pytest
import shapely

from synthmap.errors import QueryError
from synthmap.published.areas.antimeridian import the_short_way
from synthmap.published.areas.buffers import around
from synthmap.published.areas.mending import bounded, edges, meeting, mended
from synthmap.published.areas.shapes import VERTICES, make_shape


def scattered(vertices, seed=1):
    """A ring through random places: a tenth of all pairs of its edges cross."""
    xy = np.random.default_rng(seed).uniform(0, 1, (vertices, 2))
    return shapely.Polygon([*xy, xy[0]])


def strips(number, width=1e-4):
    """Thin rectangles, half of them across the others."""
    at = np.arange(number) / number
    return [*shapely.box(at, 0, at + width / number, 1), *shapely.box(0, at, 1, at + width / number)]


def coast(vertices, around=(10.0, 50.0)):
    """A rugged outline that does not cross itself."""
    angle = np.linspace(0, 2 * np.pi, vertices, endpoint=False)
    radius = 1 + 0.1 * np.random.default_rng(2).uniform(-1, 1, vertices) / vertices**0.5
    xy = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]) + around
    return shapely.Polygon(xy)


def made(*shapes):
    return make_shape(np.array(shapes, object), "")


@pytest.mark.parametrize(
    "shapes",
    [
        [scattered(VERTICES - 1)],
        strips(VERTICES // 20),
        [scattered(4_000, seed) for seed in (1, 2)],
        [shapely.LineString(scattered(5_000).exterior.coords)],
        [shapely.LinearRing(shapely.get_coordinates(scattered(5_000)))],
        [shapely.box(0, 0, 1 + 1e-6 * n, 1 + 1e-6 * n) for n in range(5_000)],
    ],
)
def test_what_crosses_itself_too_often_is_refused_at_once(shapes):
    with pytest.raises(QueryError, match="cross each other less often"):
        made(*shapes)


def test_a_polygon_around_a_pole_is_refused_before_its_holes_are_cut():
    """Its holes go round the globe, too, so that they are mended before anything else is looked at."""
    longitude = [*np.tile([-150.0, -30.0], 1_500), 90.0]
    latitude = np.random.default_rng(3).uniform(75, 85, (2, len(longitude)))
    shell, hole = (np.column_stack([longitude, row]) for row in latitude)
    with pytest.raises(QueryError, match="cross each other less often"):
        the_short_way(np.array([shapely.Polygon(shell - (0, 30), [hole])], object))


def test_pairs_of_edges_that_meet_are_all_that_cross():
    for vertices in (3, 10, 40):
        ends = edges(np.array([scattered(vertices)], object))
        lines = shapely.linestrings(ends)
        crossing = {(a, b) for b in range(len(ends)) for a in range(b) if shapely.crosses(lines[a], lines[b])}
        met = [(a, b) for one, other in meeting(ends) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
        assert len(set(met)) == len(met)
        assert crossing <= set(met)


@pytest.mark.parametrize("geometry", [shapely.Point(1, 2), shapely.Polygon(), shapely.LineString([(1, 1), (1, 1)])])
def test_what_has_no_length_has_no_edges(geometry):
    ends = edges(np.array([geometry], object))
    assert ends.shape == (0, 2, 2)
    assert list(meeting(ends)) == []
    bounded(np.array([geometry], object))


def odd(polygon, at):
    """Which points lie in an odd number of rings."""
    rings = [shapely.Polygon(ring) for ring in shapely.get_rings(polygon)]
    crossed = np.zeros(len(at), int)
    for ring in rings:
        (ax, ay), (bx, by) = (xy.T for xy in (shapely.get_coordinates(ring)[:-1], shapely.get_coordinates(ring)[1:]))
        x, y = at[:, :1], at[:, 1:]
        upward = (ay <= y) != (by <= y)
        with np.errstate(divide="ignore", invalid="ignore"):
            crossed += (upward & (x < ax + (y - ay) / (by - ay) * (bx - ax))).sum(axis=1)
    return crossed % 2 == 1


AT_THE_EDGE = [shapely.box(x, y, x + 0.5, top) for x in (0, 0.25, 0.5) for y in (0, 0.5) for top in (y + 0.5, 1)]


@pytest.mark.parametrize(
    "polygon",
    [
        scattered(30),
        shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)]),
        shapely.Polygon([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0), (0.5, 0.2), (0.8, 0.8), (0.2, 0.8), (0.5, 0.2)]),
        shapely.Polygon(shapely.box(0, 0, 1, 1).exterior, [shapely.box(0.5, 0.5, 1.5, 0.8).exterior]),
        shapely.Polygon(shapely.box(0, 0, 1, 1).exterior, [scattered(20).exterior, scattered(9, 3).exterior]),
        shapely.Polygon([(0, 0), (1, 0), (0.5, 0), (0.5, 1)]),
        *(shapely.Polygon(shapely.box(0, 0, 1, 1).exterior, [hole.exterior]) for hole in AT_THE_EDGE),
    ],
)
def test_what_lies_in_an_odd_number_of_rings_is_inside(polygon):
    found = mended(polygon)
    assert shapely.is_valid(found).all()
    assert (shapely.get_type_id(found) == shapely.GeometryType.POLYGON).all()
    at = np.random.default_rng(5).uniform(-0.1, 1.6, (500, 2))
    whole = shapely.union_all(found)
    assert shapely.contains_xy(whole, *at.T).tolist() == odd(polygon, at).tolist()


def test_a_hole_that_is_given_twice_counts_once_and_what_is_enclosed_twice_is_outside():
    square, hole = shapely.box(0, 0, 9, 9).exterior, shapely.box(1, 1, 4, 4).exterior
    again = [*hole.coords[2:-1], *hole.coords[:3]]
    assert made(shapely.Polygon(square, [hole, again, again[::-1]])).polygons().area == 72
    with pytest.raises(QueryError, match="what rings enclose twice is outside"):
        made(shapely.Polygon([*square.coords, *square.coords]))


def test_a_polygon_without_an_inside_is_nothing():
    assert mended(shapely.Polygon([(0, 0), (1, 1), (2, 2)])).size == 0


def test_a_tangle_is_mended_in_little_time():
    """make_valid takes a minute for the same."""
    assert made(scattered(300)).polygons().is_valid


def test_large_shapes_of_the_usual_kind_are_read():
    """A coast of as many vertices as are taken, with a few long edges; tiles that share theirs; the same, often."""
    assert (
        made(coast(VERTICES - 20), *(shapely.Polygon([(8, 48), (12, 52 + n), (8, 52)]) for n in (0, 1))).parts.size == 3
    )
    side = np.arange(100) / 10
    tiles = shapely.box(*(one.ravel() for one in (*np.meshgrid(side, side), *np.meshgrid(side + 0.1, side + 0.1))))
    assert made(*tiles).polygons().area == pytest.approx(100)
    assert made(*[coast(2_000)] * 40).parts.size == 1


def test_an_outline_that_would_take_too_long_is_left_out_and_the_zones_are_still_found():
    """A comb of 5,000 teeth, each 20 km long and 2 m wide: all of it lies in reach of each tooth."""
    x = 10 + np.arange(5_000) * 3e-5
    teeth = np.column_stack([np.repeat(x, 2), np.tile([50.0, 50.2, 50.2, 50.0], x.size // 2)])
    comb = make_shape(np.array([shapely.Polygon([*teeth, (10.15, 49.9), (10, 49.9)])], object), "")
    ring = around(comb.parts, np.array([10.1, 11.0]), np.array([50.205, 50.1]), buffer_m=1_000)
    assert ring.outline() is None
    assert ring.inside.tolist() == [True, False]
    wider = around(np.array([coast(20_000)], object), np.array([11.0]), np.array([50.0]), buffer_m=20_000)
    assert wider.outline().is_valid
