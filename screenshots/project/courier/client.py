"""Parcels of the courier's API."""

import httpx

from courier.retry import Unavailable, with_retries


class Courier:
    """A client of one account."""

    def __init__(self, key: str, url: str = "https://api.courier.example") -> None:
        self._http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"})

    def track(self, number: str) -> dict[str, str]:
        """Return where a parcel is."""
        return with_retries(lambda: self._get(f"/parcels/{number}"))

    def order(self, parcel: dict[str, str]) -> dict[str, str]:
        """Order the pickup of a parcel and return its label."""
        return with_retries(lambda: self._post("/parcels", parcel))

    def _get(self, path: str) -> dict[str, str]:
        answer = self._http.get(path)
        if answer.status_code >= 500:
            raise Unavailable(path)
        return answer.raise_for_status().json()

    def _post(self, path: str, body: dict[str, str]) -> dict[str, str]:
        answer = self._http.post(path, json=body)
        if answer.status_code >= 500:
            raise Unavailable(path)
        return answer.raise_for_status().json()
